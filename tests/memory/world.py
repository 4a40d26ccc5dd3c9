"""Two personas of one user, one of another, and short words for their calls."""

from __future__ import annotations

from typing import Any

from toolgate.core.result import Result
from toolgate.facade import Gate

POLICY: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "memory": {"embeddings": "none"},
    "personas": {
        "ada": {"phase": "collaborate", "user": "alice"},
        "bea": {"phase": "collaborate", "user": "alice"},
        "carl": {"phase": "collaborate", "user": "carl"},
    },
}


async def done(
    gate: Gate, tool: str, args: dict[str, Any], persona: str = "ada", **more: Any
) -> dict[str, Any]:
    """What a call gives that must succeed."""
    result = await gate.call(tool, args, persona=persona, **more)
    assert result.ok, result.error
    data: dict[str, Any] = result.data
    return data


async def failed(gate: Gate, tool: str, args: dict[str, Any], persona: str = "ada", **more: Any) -> Result:
    result = await gate.call(tool, args, persona=persona, **more)
    assert not result.ok, result.data
    return result


async def stored(gate: Gate, content: str, persona: str = "ada", conversation: str = "", **more: Any) -> str:
    """The id of a new memory."""
    data = await done(gate, "memory.store", {"content": content, **more}, persona, conversation=conversation)
    assert data["id"] == data["memories"][0]["id"]
    return str(data["id"])


async def recalled(
    gate: Gate, query: str, persona: str = "ada", conversation: str = "", **more: Any
) -> list[dict[str, Any]]:
    data = await done(gate, "memory.recall", {"query": query, **more}, persona, conversation=conversation)
    found: list[dict[str, Any]] = data["memories"]
    return found


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [one["content"] for one in found]
