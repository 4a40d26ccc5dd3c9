"""`tools/call`: one call through the gate, with progress, cancellation and consent; the result in MCP's shape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError
from toolgate.core.result import Result
from toolgate.faces.mcp import suspended_calls as parking
from toolgate.faces.mcp import upstream_resources as behind
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange
from toolgate.faces.mcp.text import readable

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import Server


async def call(server: Server, exchange: Exchange) -> Message:
    name, args = _read(exchange.params)
    if server.gate.upstream is None:
        return _made(server, await server.consent.carry(exchange, name, args, _progress(exchange)))
    if not exchange.modern or not behind.is_theirs(server.gate, name):
        return await _of_a_server(server, exchange, name, args)
    state = exchange.params.get("requestState")
    if not isinstance(state, str) or not state.startswith(parking.MARK):
        server.parking.ready(exchange, name, args)
        return await server.parking.begin(exchange, _of_a_server(server, exchange, name, args))
    try:
        return await server.parking.go_on(exchange, name, args)
    except CallError as error:
        return _made(server, await server.gate.refuse(name, args, exchange.persona, error))


async def _of_a_server(server: Server, exchange: Exchange, name: str, args: Message) -> Message:
    """A call whose server may want something of the client before it answers."""
    from toolgate.faces.mcp import client_relay as relaying  # needed only where there are servers

    caller = relaying.caller(server.consent, exchange)
    outcome = await server.consent.carry(exchange, name, args, _progress(exchange), caller)
    if exchange.modern and caller.lacked and isinstance(outcome, Result) and not outcome.ok:
        needed: Message = {"requiredCapabilities": {capability: {} for capability in sorted(caller.lacked)}}
        told = f"Missing required client capability: {', '.join(sorted(caller.lacked))}"
        raise RpcError(MISSING_CAPABILITY, told, needed)
    return _made(server, outcome)


def _made(server: Server, outcome: Result | Message) -> Message:
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
    data = result.data
    if not result.ok or not isinstance(data, dict) or data.get("untrusted") is not True:
        return None
    if not behind.is_theirs(server.gate, result.tool):
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
    if _token(exchange) is None:
        return None
    loop, last = asyncio.get_running_loop(), -1.0

    def tell(fraction: float, message: str) -> None:
        nonlocal last
        if not fraction > last:  # the protocol wants it to grow; NaN does not
            return
        last = fraction
        params: dict[str, Any] = {"progressToken": _token(exchange), "progress": fraction, "total": 1}
        exchange.notify("notifications/progress", params | ({"message": message} if message else {}))

    def from_anywhere(fraction: float, message: str) -> None:
        loop.call_soon_threadsafe(tell, float(fraction), str(message))

    return from_anywhere


def _token(exchange: Exchange) -> str | int | None:
    """Of the request as it is now: one that waited for its client is answered under another id."""
    token = exchange.meta.get("progressToken")
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None
