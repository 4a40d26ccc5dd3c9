"""`tools/call`: one call through the gate, with progress, cancellation and consent, and its result in MCP's shape: text that a
model reads, and the whole result beside it only for who asks.

A client asks in `initialize` (or in each request's envelope) with the capability `experimental: {"toolgate/structured": {}}`,
or for one call with `"toolgate/structured": true` in its `_meta`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError
from toolgate.core.rendering import Reader, Reading
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp import request_state, resources
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, Message, RpcError
from toolgate.faces.mcp.protocol import STRUCTURED_KEY, Exchange

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import McpServer

_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})


async def call(server: McpServer, exchange: Exchange) -> Message:
    name, args = _meant(server, *_read(exchange.params))
    if server.gate.upstream is None:
        outcome = await server.consent.carry(exchange, name, args, _progress(exchange))
        return _made(server, exchange, outcome, args)
    if not exchange.modern or not resources.is_theirs(server.gate, name):
        return await _of_a_server(server, exchange, name, args)
    state = exchange.params.get("requestState")
    if not isinstance(state, str) or not state.startswith(request_state.MARK):
        server.suspended.ready(exchange, name, args)
        return await server.suspended.begin(exchange, _of_a_server(server, exchange, name, args))
    try:
        return await server.suspended.go_on(exchange, name, args)
    except CallError as error:
        refused = await server.gate.refuse(name, args, exchange.persona, error)
        return _made(server, exchange, refused, args)


async def _of_a_server(server: McpServer, exchange: Exchange, name: str, args: Message) -> Message:
    """A call whose server may want something of the client before it answers."""
    from toolgate.faces.mcp import client_relay as relaying  # needed only where there are servers

    caller = relaying.caller(server.consent, exchange)
    outcome = await server.consent.carry(exchange, name, args, _progress(exchange), caller)
    if exchange.modern and caller.lacked and isinstance(outcome, Result) and not outcome.ok:
        needed: Message = {"requiredCapabilities": {capability: {} for capability in sorted(caller.lacked)}}
        told = f"Missing required client capability: {', '.join(sorted(caller.lacked))}"
        raise RpcError(MISSING_CAPABILITY, told, needed)
    return _made(server, exchange, outcome, args)


def _made(server: McpServer, exchange: Exchange, outcome: Result | Message, args: Message) -> Message:
    return as_mcp(server.gate, exchange, outcome, args) if isinstance(outcome, Result) else outcome


def _read(params: Message) -> tuple[str, Message]:
    name, args = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: tools/call needs the name of a tool")
    if args is None:
        args = {}
    if not isinstance(args, dict):
        raise RpcError(INVALID_PARAMS, "Invalid params: arguments is not an object")
    return name, args


def _meant(server: McpServer, name: str, args: Message) -> tuple[str, Message]:
    """The call that a client means: by a name that only its list has, or through a tool that stands for any other."""
    name = server.listing.meant(name)
    tool = server.gate.tool(name)
    if tool is not None and tool.forwards is not None:
        with suppress(CallError):  # which the gate refuses in its turn
            inner, given = tool.forwards(args)
            inner = server.listing.meant(inner)
            if (again := server.gate.tool(inner)) is None or again.forwards is None:
                return inner, dict(given)
    return name, args


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
