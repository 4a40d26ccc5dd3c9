"""What a source file defines: names, kinds, lines, nesting."""
