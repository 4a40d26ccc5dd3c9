from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import Change, Context, FileChange, MountPath
from toolgate.facade import Gate
from toolgate.faces.mcp.server import McpServer

ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "observe"}, "bob": {"phase": "observe", "deny": ["t.secret"]}},
    "limits": {"persona": ROOMY, "global": ROOMY},
    "mcp": {"structured": "always", "profile": "full", "list": "all", "names": "dotted"},
    "policy": {
        "rules": [
            {"name": "elsewhere", "tools": ["t.far"], "decision": "ask", "reason": "console only", "channels": ["console"]},
            {"name": "reviewed", "tools": ["t.act", "t.write"], "decision": "ask", "reason": "it is reviewed"},
            {"name": "free", "persona": "*", "tools": ["t.*"], "decision": "allow"},
        ]
    },
}  # fmt: skip


@dataclass
class World:
    """A gate with tools that say when they really run."""

    root: Path
    gate: Gate
    server: McpServer
    ran: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    ran: list[str] = []
    started, go = asyncio.Event(), asyncio.Event()
    root = tmp_path / "project"
    root.mkdir()
    (root / "hello.py").write_text("print('hello')\n")
    tools = _tools(ran, started, go)
    async with toolgate.open(root, CONFIG, tools=tools) as gate:
        server = McpServer(gate)
        try:
            yield World(root, gate, server, ran, started, go)
        finally:
            server.close()


def _tools(ran: list[str], started: asyncio.Event, go: asyncio.Event) -> list[toolgate.Tool]:
    @toolgate.tool("t.look", reads=["system"])
    async def look(x: str = "") -> dict[str, str]:
        """Look at something."""
        ran.append(f"look {x}")
        return {"saw": x}

    @toolgate.tool("t.act", writes=["outside"])
    async def act(x: str = "") -> dict[str, str]:
        """Do something outside."""
        ran.append(f"act {x}")
        return {"did": x}

    @toolgate.tool("t.far", writes=["outside"])
    async def far(x: str = "") -> str:
        """Do something that only the console approves."""
        ran.append(f"far {x}")
        return x

    @toolgate.tool("t.secret", reads=["system"])
    async def secret() -> str:
        """Not for everybody."""
        return "secret"

    @toolgate.tool("t.fail", reads=["system"])
    async def fail(x: str = "") -> str:
        """Fail."""
        raise RuntimeError(f"could not {x}")

    @toolgate.tool("t.big", reads=["system"])
    async def big() -> dict[str, Any]:
        """A number that few can hold, and a text of many lines."""
        return {"number": 2**80, "text": "a\nb"}

    @toolgate.tool("t.slow", reads=["system"])
    async def slow(context: Context) -> str:
        """Wait until told to go on."""
        started.set()
        context.progress(0.25, "a quarter")
        context.progress(0.1, "backwards")
        context.progress(0.5, "half")
        try:
            await asyncio.wait_for(go.wait(), 60)
        except asyncio.CancelledError:
            ran.append("slow cancelled")
            raise
        ran.append("slow")
        return "done"

    def plan(path: MountPath, text: str) -> Change:
        """Write a file."""
        return Change((FileChange(path, None, text.encode()),), f"write {path.shown}")

    @toolgate.tool("t.write", writes=["project"], plan=plan)
    async def write(change: Change) -> str:
        ran.append(f"write {change.files[0].path.relative}")
        return "written"

    @toolgate.tool("t.other", reads=["system"], origin="imported")
    async def other(kind: str = "image") -> dict[str, Any]:
        """What another server says."""
        return {
            "source": "other",
            "untrusted": True,
            "content": [{"type": kind, "data": "aGk=", "mimeType": "image/png"}],
        }

    return [look, act, far, secret, fail, big, slow, write, other]
