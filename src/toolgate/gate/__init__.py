"""The gate: one pipeline, one file per stage. The only way a tool runs."""
