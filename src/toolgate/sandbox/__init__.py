"""Processes that can hurt nobody: programs behind walls, what they are given and what comes back."""
