"""`tools/call`: one call through the gate, with progress, cancellation and consent; the result in MCP's shape.

The text of a result is how a model reads it: plain lines, with long texts as they are instead of as JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from toolgate.core.errors import CallError
from toolgate.core.result import Result
from toolgate.faces.mcp import resources, suspended_calls
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import McpServer


async def call(server: McpServer, exchange: Exchange) -> Message:
    name, args = _read(exchange.params)
    if server.gate.upstream is None:
        return _made(server, await server.consent.carry(exchange, name, args, _progress(exchange)))
    if not exchange.modern or not resources.is_theirs(server.gate, name):
        return await _of_a_server(server, exchange, name, args)
    state = exchange.params.get("requestState")
    if not isinstance(state, str) or not state.startswith(suspended_calls.MARK):
        server.suspended.ready(exchange, name, args)
        return await server.suspended.begin(exchange, _of_a_server(server, exchange, name, args))
    try:
        return await server.suspended.go_on(exchange, name, args)
    except CallError as error:
        return _made(server, await server.gate.refuse(name, args, exchange.persona, error))


async def _of_a_server(server: McpServer, exchange: Exchange, name: str, args: Message) -> Message:
    """A call whose server may want something of the client before it answers."""
    from toolgate.faces.mcp import client_relay as relaying  # needed only where there are servers

    caller = relaying.caller(server.consent, exchange)
    outcome = await server.consent.carry(exchange, name, args, _progress(exchange), caller)
    if exchange.modern and caller.lacked and isinstance(outcome, Result) and not outcome.ok:
        needed: Message = {"requiredCapabilities": {capability: {} for capability in sorted(caller.lacked)}}
        told = f"Missing required client capability: {', '.join(sorted(caller.lacked))}"
        raise RpcError(MISSING_CAPABILITY, told, needed)
    return _made(server, outcome)


def _made(server: McpServer, outcome: Result | Message) -> Message:
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


def _blocks(server: McpServer, result: Result) -> list[Message] | None:
    """What another MCP server answered, as it answered: its images and resources stay what they are."""
    data = result.data
    if not result.ok or not isinstance(data, dict) or data.get("untrusted") is not True:
        return None
    if not resources.is_theirs(server.gate, result.tool):
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


def readable(result: Result) -> str:
    """For clients that show their model only text; the structured content says the same."""
    if result.error is None:
        return of_data(result.data)
    error = result.error
    lines = [f"{error.code.value}: {error.message}"]
    if error.fix:
        lines.append(f"fix: {error.fix}")
    if result.data:
        lines.append(of_data(result.data))
    return "\n".join(lines)


def of_data(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return _object(data)
    if isinstance(data, list):
        return "\n".join(_one_line(item) for item in data) or "[]"
    return _one_line(data)


def _object(data: dict[str, Any]) -> str:
    """Short values first, one a line; texts of many lines and lists below, under their names."""
    short, long = [], []
    for name, value in data.items():
        if isinstance(value, str) and "\n" in value:
            long.append(f"{name}:\n{value}")
        elif isinstance(value, list) and len(value) > 1:
            long.append(f"{name}:\n" + "\n".join(map(_one_line, value)))
        else:
            short.append(f"{name}: {_one_line(value)}")
    return "\n".join(short + long)


def _one_line(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer beyond 64 bits
        return str(value)
