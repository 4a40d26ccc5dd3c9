"""The gate about itself: `tools.*`, `events.*` and `system.*`."""
