"""Secrets: what must not reach a model, the journal or a log."""
