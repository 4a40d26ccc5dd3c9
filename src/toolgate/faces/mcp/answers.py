"""Results in MCP's shape: text that a model reads, and the whole result beside it only for who asks.

A client asks in `initialize` (or in each request's envelope) with the capability `experimental: {"toolgate/structured": {}}`,
or for one call with `"toolgate/structured": true` in its `_meta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.core.rendering import Reader, Reading
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp import resources
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import STRUCTURED_KEY, Exchange

_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def structured(gate: Gate, exchange: Exchange) -> bool:
    """Whether this client gets output schemas and structured content."""
    said = gate.config.mcp.structured
    if said != "auto":
        return said == "always"
    return STRUCTURED_KEY in exchange.capabilities or exchange.meta.get(STRUCTURED_KEY) is True


def reader(gate: Gate, exchange: Exchange) -> Reader:
    """What is sent of a result, so that the ledger knows what it cost."""
    twice = structured(gate, exchange)

    def read(tool: str, data: Any, args: Mapping[str, Any], size: int) -> Reading:
        blocks = _blocks(gate, tool, data)
        if blocks is None:
            text = gate.render(tool, data, args)
            return Reading(text, len(text) + size * twice)
        sent = sum(len(value) for block in blocks for value in block.values() if isinstance(value, str))
        return Reading("", sent + size * twice)

    return read


def as_mcp(gate: Gate, exchange: Exchange, result: Result, args: Message) -> Message:
    blocks = _blocks(gate, result.tool, result.data, result.meta.truncated) if result.ok else None
    message: Message = {"content": blocks or [{"type": "text", "text": gate.rendered(result, args)}]}
    if structured(gate, exchange):
        message["structuredContent"] = result.as_dict()
    if not result.ok:
        message["isError"] = True
    return message


def _blocks(gate: Gate, tool: str, data: Any, truncated: bool = False) -> list[Message] | None:
    """What another MCP server answered, as it answered: its images and resources stay what they are."""
    if not isinstance(data, dict) or data.get("untrusted") is not True:
        return None
    content = data.get("content")
    if not isinstance(content, list) or not content or not resources.is_theirs(gate, tool):
        return None
    if not all(isinstance(item, dict) and item.get("type") in _KINDS for item in content):
        return None
    if truncated and any(item["type"] != "text" for item in content):
        return None  # half a picture is none: then only what can be read
    warning = data.get("warning")
    return [*content, {"type": "text", "text": f"warning: {warning}"}] if warning else content
