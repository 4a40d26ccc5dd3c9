"""Searching text in mounts: two engines, one answer."""
