"""Ratios against named peers, each pair measured in one run. `python -m bench` measures all and writes RESULTS.md."""
