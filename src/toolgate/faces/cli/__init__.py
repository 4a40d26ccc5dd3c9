"""The command line: one small file per family of commands."""
