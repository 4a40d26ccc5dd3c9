"""`tools/call`: one call through the gate, with progress, cancellation and consent; the result in MCP's shape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.core.result import Result
from toolgate.faces.mcp import relaying
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange
from toolgate.faces.mcp.text import readable

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import Server


async def call(server: Server, exchange: Exchange) -> Message:
    name, args = _read(exchange.params)
    with relaying.questions(server.gate, exchange):
        outcome = await server.consent.carry(exchange, name, args, _progress(exchange))
    return as_mcp(outcome, _blocks(server, outcome)) if isinstance(outcome, Result) else outcome


def _read(params: Message) -> tuple[str, Message]:
    name, args = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: tools/call needs the name of a tool")
    if args is None:
        args = {}
    if not isinstance(args, dict):
        raise RpcError(INVALID_PARAMS, "Invalid params: arguments is not an object")
    return name, args


def _blocks(server: Server, result: Result) -> list[Message] | None:
    """What another MCP server answered, as it answered: its images and resources stay what they are."""
    registry, data = server.gate.services.registry, result.data
    if not result.ok or not isinstance(data, dict) or data.get("untrusted") is not True:
        return None
    if result.tool not in registry or registry.resolve(result.tool).origin != "imported":
        return None
    content = data.get("content")
    whole = isinstance(content, list) and all(
        isinstance(item, dict) and item.get("type") in _KINDS for item in content
    )
    cut = result.meta.truncated and whole and any(item["type"] != "text" for item in content or ())
    return content if whole and not cut else None  # half a picture is none: then only what can be read


_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def as_mcp(result: Result, blocks: list[Message] | None = None) -> Message:
    message: Message = {
        "content": [{"type": "text", "text": readable(result)}] if blocks is None else blocks,
        "structuredContent": result,
    }
    if not result.ok:
        message["isError"] = True
    return message


def _progress(exchange: Exchange) -> Callable[[float, str], None] | None:
    """What a tool says of its progress, if the client gave a token for it. Tools may speak from their threads."""
    token = exchange.meta.get("progressToken")
    if not isinstance(token, str | int) or isinstance(token, bool):
        return None
    loop, last = asyncio.get_running_loop(), -1.0

    def tell(fraction: float, message: str) -> None:
        nonlocal last
        if not fraction > last:  # the protocol wants it to grow; NaN does not
            return
        last = fraction
        params: dict[str, Any] = {"progressToken": token, "progress": fraction, "total": 1}
        exchange.notify("notifications/progress", params | ({"message": message} if message else {}))

    def from_anywhere(fraction: float, message: str) -> None:
        loop.call_soon_threadsafe(tell, float(fraction), str(message))

    return from_anywhere
