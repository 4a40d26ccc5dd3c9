"""Mounts and the files in them: confined, atomic, kept by content so that a change can be rolled either way."""
