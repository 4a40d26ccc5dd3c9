"""A peer of bench/mcp.py: one bare tool on the official SDK's high-level server, which grew out of FastMCP."""

from __future__ import annotations

from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("peer", log_level="ERROR")


@server.tool(name="code.read")
def read(path: str) -> str:
    return Path(path).read_text()


if __name__ == "__main__":
    server.run()
