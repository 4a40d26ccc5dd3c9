"""A gate with a server behind it, and raw clients in front: what tests of passing things on share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toolgate
from toolgate.faces.mcp.server import McpServer
from upstream.world import raw

from .clients import Message, Raw

ONE = "toolgate://servers/up/note://one"
SAMPLES = {"sampling": {}}
ASKS = {"elicitation": {}}
ANSWER = {
    "role": "assistant",
    "content": {"type": "text", "text": "42"},
    "model": "m",
    "stopReason": "endTurn",
}


@dataclass
class Behind:
    gate: toolgate.Gate
    server: McpServer
    clients: list[Raw] = field(default_factory=list)

    async def client(self, capabilities: Message | None = None, persona: str = "ada") -> Raw:
        """One of the handshake era."""
        made = self.stateless(persona)
        await made.shake(capabilities)
        return made

    def stateless(self, persona: str = "ada") -> Raw:
        made = Raw(self.server, persona)
        self.clients.append(made)
        return made

    async def rows(self, tool: str) -> list[str]:
        """The kinds of events of one tool, oldest first."""
        return [row.kind for row in reversed(await self.gate.events()) if row.tool == tool]


@asynccontextmanager
async def behind(
    place: Path, database: str | None = "memory", rules: tuple[Message, ...] = (), spec: Message | None = None, **more: Any
) -> AsyncIterator[Behind]:  # fmt: skip
    """Ada may do everything with the server `up`, carl is refused what it has to read and its samplings."""
    roomy = {"per_minute": 100_000, "per_hour": 1_000_000}
    config: Message = {
        "version": 1,
        "default_persona": "ada",
        "personas": {
            "ada": {"phase": "contribute", "allow": ["up.*"]},
            "bob": {"phase": "contribute", "allow": ["up.*"]},
            "carl": {"phase": "contribute", "allow": ["up.*"], "deny": ["up.resources_read", "up.sampling"]},
        },
        "limits": {"persona": roomy, "global": roomy},
        "policy": {"rules": list(rules)},
        "mcp": {"structured": "always", "names": "dotted"},
        "servers": {"up": spec or raw(place, "library", **more)},
    }
    async with toolgate.open(place, config, database) as gate:
        assert gate.upstream is not None
        await gate.upstream.discover("up")
        server = McpServer(gate)
        world = Behind(gate, server)
        try:
            yield world
        finally:
            for client in world.clients:
                await client.connection.close()
            await server.suspended.close()
            server.close()


def reply(client: Raw, asked: Message, result: Message) -> None:
    client.connection.receive({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def said(answer: Message) -> str:
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])
