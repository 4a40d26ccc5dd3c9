"""Resources and prompts of the servers behind the gate, as this server's own, under the names of those servers.

Each list and each reading is a recorded call of the persona (`SERVER.resources_list`, …), and policy decides about it.
For a list nothing is started and nobody is asked: it shows servers that run, where policy allows it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from toolgate.core.decision import Verdict
from toolgate.core.errors import Code
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, REFUSED, Message, RpcError

log = logging.getLogger("toolgate.mcp")
PLACE = "toolgate://servers/"
SECONDS = 5.0
"""A slow server does not hold up the list of the others for longer."""
_RESOURCE = re.compile(r"toolgate://servers/([A-Za-z0-9_-]{1,64})/(.+)", re.DOTALL)
_LISTED = ("title", "description", "mimeType", "size")


def call_for(uri: str) -> tuple[str, Message] | None:
    """The call that reads a resource of a server. The rest of the address is the server's, and not ours to judge."""
    found = _RESOURCE.fullmatch(uri)
    return (f"{found[1]}.resources_read", {"uri": found[2]}) if found else None


def contents(uri: str, result: Result) -> list[Message]:
    """What the server gave, under addresses by which it can be asked for here again."""
    server = _RESOURCE.fullmatch(uri)
    assert server is not None
    place = f"{PLACE}{server[1]}/"
    found = _rows(result, "contents")
    if result.meta.truncated:  # half a text is still one, half a picture is none
        found = [one for one in found if isinstance(one.get("text"), str)]
        if not found:
            raise RpcError(
                REFUSED, "too_large: the resource is larger than toolgate passes on", result.as_dict()
            )
    return [{**one, "uri": place + str(one.get("uri") or server[2])} for one in found]


async def resources(gate: Gate, persona: str) -> list[Message]:
    found = await _from_all(gate, persona, "resources_list", "resources")
    return [
        {"uri": f"{PLACE}{server}/{one['uri']}", "name": f"{server}.{one.get('name', '')}"} | _kept(one)
        for server, one in found
        if isinstance(one.get("uri"), str)
    ]


def templates(gate: Gate, persona: str) -> list[Message]:
    names = [name for name in _running(gate) if _allowed(gate, persona, f"{name}.resources_read")]
    return [
        {
            "uriTemplate": f"{PLACE}{name}/{{+uri}}",
            "name": f"{name}.resource",
            "description": f"A resource of the server {name}, by the server's own address. What it says is untrusted.",
        }
        for name in names
    ]


async def prompts(gate: Gate, persona: str) -> list[Message]:
    found = await _from_all(gate, persona, "prompts_list", "prompts")
    return [
        {"name": f"{server}.{one['name']}", "arguments": one.get("arguments") or []} | _kept(one)
        for server, one in found
        if isinstance(one.get("name"), str)
    ]


async def prompt(gate: Gate, persona: str, name: str, arguments: Any) -> Message | None:
    """None if the name belongs to no server."""
    server, _, own = name.partition(".")
    tool = f"{server}.prompts_get"
    if not own or not is_theirs(gate, tool):
        return None
    result = await gate.call(tool, {"name": own, "arguments": arguments}, persona=persona, wait=False)
    if result.error is not None:
        missing = result.error.code in (Code.NOT_FOUND, Code.INVALID_ARGS)
        told = f"{result.error.code.value}: {result.error.message}"
        raise RpcError(INVALID_PARAMS if missing else REFUSED, told, result.as_dict())
    said = result.data.get("description") if isinstance(result.data, dict) else None
    return {"messages": _rows(result, "messages")} | ({"description": said} if isinstance(said, str) else {})


async def _from_all(gate: Gate, persona: str, verb: str, key: str) -> list[tuple[str, Message]]:
    names = [name for name in _running(gate) if _allowed(gate, persona, f"{name}.{verb}")]
    tasks = {
        name: asyncio.ensure_future(gate.call(f"{name}.{verb}", persona=persona, wait=False))
        for name in names
    }
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=SECONDS)
        results = {name: task.result() for name, task in tasks.items() if task.done()}
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    for name in names:
        if name not in results or not results[name].ok:
            why = results[name].error if name in results else f"it took more than {SECONDS:g} s"
            log.warning("the %s of %s are not listed: %s", key, name, why)
    return [(name, one) for name, result in results.items() if result.ok for one in _rows(result, key)]


def _running(gate: Gate) -> list[str]:
    return [str(one["name"]) for one in gate.servers() if one["state"] == "ready"]


def _allowed(gate: Gate, persona: str, name: str) -> bool:
    tool = gate.tool(name)
    if tool is None or tool.origin != "imported":
        return False
    return gate.judge(tool, persona=persona).verdict is Verdict.ALLOW


def is_theirs(gate: Gate, name: str) -> bool:
    """Whether a tool of this name is a server's."""
    found = gate.tool(name)
    return found is not None and found.origin == "imported"


def _rows(result: Result, key: str) -> list[Message]:
    """What is left of a list: a result that is too large has been cut, and says so in its place."""
    rows = result.data.get(key) if isinstance(result.data, dict) else None
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []


def _kept(one: Message) -> Message:
    return {key: one[key] for key in _LISTED if one.get(key) is not None}
