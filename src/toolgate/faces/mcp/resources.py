"""Resources: the ledger, what policy allows, and files of mounts. Each is read by a call through the gate."""

from __future__ import annotations

import re
from urllib.parse import unquote

from toolgate.core.errors import Code, by_policy
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp import upstream_resources as behind
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, REFUSED, RESOURCE_NOT_FOUND, Message, RpcError, write
from toolgate.faces.mcp.protocol import Exchange

JSON, TEXT = "application/json", "text/plain"
_LEDGER, _POLICY, _FILE = "events.query", "tools.list", "fs.read"
_EVENT = re.compile(r"toolgate://ledger/event/([1-9][0-9]{0,17})")
_CALL = re.compile(r"toolgate://ledger/call/(c_[0-9a-f]{1,64})")
_PLACE = re.compile(r"toolgate://files/([A-Za-z0-9_-]{1,64})/(.+)", re.DOTALL)
_MISSING = frozenset(
    {Code.NOT_FOUND, Code.OUTSIDE_MOUNT, Code.BLOCKED_PATH, Code.INVALID_ARGS, Code.UNKNOWN_TOOL}
)


def listed(gate: Gate, persona: str) -> list[Message]:
    seen = {spec.name for spec in gate.tools(persona)}
    rows = [
        (_POLICY, "toolgate://policy", "policy", "What this persona may do with each tool, and what asks."),
        (_LEDGER, "toolgate://ledger", "ledger", "The last 50 recorded events, newest first."),
    ]
    return [
        {"uri": uri, "name": name, "description": what, "mimeType": JSON}
        for tool, uri, name, what in rows
        if tool in seen
    ]


def templates(gate: Gate, persona: str) -> list[Message]:
    seen = {spec.name for spec in gate.tools(persona)}
    rows = [
        (_LEDGER, "toolgate://ledger/event/{event_id}", "event", "One recorded event.", JSON),
        (_LEDGER, "toolgate://ledger/call/{call_id}", "call", "Every event of one call.", JSON),
        (
            _FILE,
            "toolgate://files/{mount}/{+path}",
            "file",
            "A text file of a mount, such as `project`.",
            TEXT,
        ),
    ]
    return [
        {"uriTemplate": uri, "name": name, "description": what, "mimeType": mime}
        for tool, uri, name, what, mime in rows
        if tool in seen
    ]


async def read(gate: Gate, exchange: Exchange) -> Message:
    uri = exchange.params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: resources/read needs a uri")
    found = call_for(uri)
    if found is None:
        raise missing(exchange, uri, f"there is no resource {uri[:200]!r}")
    tool, args = found
    result = await gate.call(tool, args, persona=exchange.persona, wait=False)
    if result.error is not None:
        code = result.error.code
        if code in _MISSING and not by_policy(code, result.data):
            raise missing(exchange, uri, result.error.message)
        raise RpcError(REFUSED, f"{code.value}: {result.error.message}", result.as_dict())
    theirs = behind.call_for(uri) is not None
    contents = behind.contents(uri, result) if theirs else [{"uri": uri} | _contents(tool, result)]
    more = {"ttlMs": 0, "cacheScope": "private"} if exchange.modern else {}
    return {"contents": contents} | more


def known(uri: str) -> bool:
    return call_for(uri) is not None


def call_for(uri: str) -> tuple[str, Message] | None:
    if uri == "toolgate://policy":
        return _POLICY, {"all": True}
    if uri == "toolgate://ledger":
        return _LEDGER, {"limit": 50}
    if event := _EVENT.fullmatch(uri):
        return _LEDGER, {"after": int(event[1]) - 1, "limit": 1, "newest_first": False}
    if call := _CALL.fullmatch(uri):
        return _LEDGER, {"call": call[1], "newest_first": False}
    if place := _PLACE.fullmatch(uri):
        return _FILE, {"path": f"{place[1]}:{unquote(place[2])}"}  # the gate judges the path, as of any call
    return behind.call_for(uri)


def _contents(tool: str, result: Result) -> Message:
    if tool == _FILE:
        return {"mimeType": TEXT, "text": result.data.get("content", "")}
    return {"mimeType": JSON, "text": write({"data": result.data})[8:-1].decode()}


def missing(exchange: Exchange, uri: str, message: str) -> RpcError:
    code = INVALID_PARAMS if exchange.modern else RESOURCE_NOT_FOUND
    return RpcError(code, f"Resource not found: {message}", {"uri": uri[:1000]})
