"""The vocabulary: values, errors and ports. Nothing here does I/O, and nothing here imports another room."""
