"""Adapters: the tools of a gate inside other agent frameworks. Each is one module that needs its framework installed."""
