"""Files: `fs.*`, patches, undo and the list of what was written."""
