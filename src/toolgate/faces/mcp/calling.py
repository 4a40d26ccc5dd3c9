"""`tools/call`: one call through the gate, with progress, cancellation and consent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError
from toolgate.core.result import Result
from toolgate.faces.mcp import resources, suspended_calls
from toolgate.faces.mcp.answers import as_mcp
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import McpServer


async def call(server: McpServer, exchange: Exchange) -> Message:
    name, args = _meant(server, *_read(exchange.params))
    if server.gate.upstream is None:
        outcome = await server.consent.carry(exchange, name, args, _progress(exchange))
        return _made(server, exchange, outcome, args)
    if not exchange.modern or not resources.is_theirs(server.gate, name):
        return await _of_a_server(server, exchange, name, args)
    state = exchange.params.get("requestState")
    if not isinstance(state, str) or not state.startswith(suspended_calls.MARK):
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
