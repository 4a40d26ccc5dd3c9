"""A peer of bench/mcp.py: one bare tool on FastMCP, run by a Python that has the package `fastmcp`."""

from __future__ import annotations

from pathlib import Path

from fastmcp import FastMCP

server = FastMCP("peer")


def read(path: str) -> str:
    return Path(path).read_text()


server.tool(name="code.read")(read)

if __name__ == "__main__":
    server.run(show_banner=False)
