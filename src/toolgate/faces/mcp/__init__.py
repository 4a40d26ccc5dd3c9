"""The MCP face: tools, resources and prompts of one persona, over stdio and HTTP, in both eras of the protocol.

A small protocol core of our own, so that a server starts and answers quickly; tests drive it with the official SDK.
"""
