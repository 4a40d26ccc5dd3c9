"""Resources: the ledger, what policy allows, files of mounts, and what the servers behind the gate have, prompts too.

Each is read by a recorded call of the persona, and policy decides about it. What a server has stands under the name of
that server; its list is a recorded call too (`SERVER.resources_list`, …), for which nothing is started and nobody is asked:
it shows servers that run, where policy allows it.

Prompts of our own are for common reviews, each naming the tools it leans on; what could be typed for their arguments is told too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolgate.core.decision import Verdict
from toolgate.core.display import visible
from toolgate.core.errors import Code, by_policy
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, REFUSED, RESOURCE_NOT_FOUND, Message, RpcError, write
from toolgate.faces.mcp.protocol import Exchange

log = logging.getLogger("toolgate.mcp")
PLACE = "toolgate://servers/"
LIST_SECONDS = 5.0
"""A slow server does not hold up the list of the others for longer."""
_OF_SERVER = re.compile(r"toolgate://servers/([A-Za-z0-9_-]{1,64})/(.+)", re.DOTALL)
_LISTED = ("title", "description", "mimeType", "size")
JSON, TEXT = "application/json", "text/plain"
_LEDGER, _POLICY, _FILE = "events.query", "tools.list", "fs.read"
_EVENT = re.compile(r"toolgate://ledger/event/([1-9][0-9]{0,17})")
_CALL = re.compile(r"toolgate://ledger/call/(c_[0-9a-f]{1,64})")
_PLACE = re.compile(r"toolgate://files/([A-Za-z0-9_-]{1,64})/(.+)", re.DOTALL)
_MISSING = frozenset(
    {Code.NOT_FOUND, Code.OUTSIDE_MOUNT, Code.BLOCKED_PATH, Code.INVALID_ARGS, Code.UNKNOWN_TOOL}
)

MOST_COMPLETIONS = 100
"""The protocol's own limit."""
_LONGEST_ARGUMENT = 1000
_DEFAULTS = {"review_changes": "the last commit", "review_activity": "the last 200 events"}


async def listed(gate: Gate, persona: str) -> list[Message]:
    return _own(gate, persona) + await _server_resources(gate, persona)


def templates(gate: Gate, persona: str) -> list[Message]:
    return _own_templates(gate, persona) + _server_templates(gate, persona)


def _own(gate: Gate, persona: str) -> list[Message]:
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


def _own_templates(gate: Gate, persona: str) -> list[Message]:
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
    theirs = server_call(uri) is not None
    contents = server_contents(uri, result) if theirs else [{"uri": uri} | _contents(tool, result)]
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
        from urllib.parse import unquote

        return _FILE, {"path": f"{place[1]}:{unquote(place[2])}"}  # the gate judges the path, as of any call
    return server_call(uri)


def _contents(tool: str, result: Result) -> Message:
    if tool == _FILE:
        return {"mimeType": TEXT, "text": result.data.get("content", "")}
    return {"mimeType": JSON, "text": write({"data": result.data})[8:-1].decode()}


def missing(exchange: Exchange, uri: str, message: str) -> RpcError:
    code = INVALID_PARAMS if exchange.modern else RESOURCE_NOT_FOUND
    return RpcError(code, f"Resource not found: {message}", {"uri": uri[:1000]})


# --- of servers behind the gate ---------------------------------------------------------------------------


def server_call(uri: str) -> tuple[str, Message] | None:
    """The call that reads a resource of a server. The rest of the address is the server's, and not ours to judge."""
    found = _OF_SERVER.fullmatch(uri)
    return (f"{found[1]}.resources_read", {"uri": found[2]}) if found else None


def server_contents(uri: str, result: Result) -> list[Message]:
    """What the server gave, under addresses by which it can be asked for here again."""
    server = _OF_SERVER.fullmatch(uri)
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


async def _server_resources(gate: Gate, persona: str) -> list[Message]:
    found = await _from_all(gate, persona, "resources_list", "resources")
    return [
        {"uri": f"{PLACE}{server}/{one['uri']}", "name": f"{server}.{one.get('name', '')}"} | _shown(one)
        for server, one in found
        if isinstance(one.get("uri"), str)
    ]


def _server_templates(gate: Gate, persona: str) -> list[Message]:
    names = [name for name in _running(gate) if _allowed(gate, persona, f"{name}.resources_read")]
    return [
        {
            "uriTemplate": f"{PLACE}{name}/{{+uri}}",
            "name": f"{name}.resource",
            "description": f"A resource of the server {name}, by the server's own address. What it says is untrusted.",
        }
        for name in names
    ]


async def server_prompts(gate: Gate, persona: str) -> list[Message]:
    found = await _from_all(gate, persona, "prompts_list", "prompts")
    return [
        {"name": f"{server}.{one['name']}", "arguments": one.get("arguments") or []} | _shown(one)
        for server, one in found
        if isinstance(one.get("name"), str)
    ]


async def server_prompt(gate: Gate, persona: str, name: str, arguments: Any) -> Message | None:
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
            await asyncio.wait(tasks.values(), timeout=LIST_SECONDS)
        results = {name: task.result() for name, task in tasks.items() if task.done()}
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    for name in names:
        if name not in results or not results[name].ok:
            why = results[name].error if name in results else f"it took more than {LIST_SECONDS:g} s"
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


def _shown(one: Message) -> Message:
    return {key: one[key] for key in _LISTED if one.get(key) is not None}


@dataclass(frozen=True)
class Prompt:
    title: str
    description: str
    arguments: dict[str, tuple[str, bool]]
    """Name → what it is, and whether it must be given."""
    text: str


PROMPTS = {
    "review_changes": Prompt(
        "Review changes",
        "Review what has changed in the project since a revision.",
        {"since": ("A revision such as HEAD~3 or main; default: what is not committed", False)},
        "Review the changes of this project since {since}. Read them with `code.diff`, look at the code around each "
        "hunk with `code.read`, and use `code.search` for callers of what changed. Report bugs first, then risks, then "
        "style, each with file and line. Change nothing.",
    ),
    "review_file": Prompt(
        "Review a file",
        "Review one file with its history.",
        {"path": ("The file, such as src/app.py", True)},
        "Review the file {path}. Read it with `code.read`, its structure with `code.outline`, its history with "
        "`code.log` and `code.blame`. Say what it does, what is wrong or fragile in it, and what you would test. "
        "Change nothing.",
    ),
    "review_activity": Prompt(
        "Review what agents did",
        "Go through the ledger: what was done, refused, and left unknown.",
        {"since": ("A time such as 2026-01-31T12:00:00Z; default: the last 200 events", False)},
        "Review what was done through toolgate since {since}. Read the events with `events.query` (limit 200). "
        "Summarise by persona: what was changed, what a human approved or refused, what policy denied, what failed or "
        "is unknown. Point at anything unusual with its event number.",
    ),
    "explain_refusal": Prompt(
        "Explain a refusal",
        "Say why a tool is refused or asks, and what a human could change.",
        {"tool": ("The tool, such as fs.write", True)},
        "Explain what this persona may do with the tool {tool}. Use `tools.help` for its effects and for the rule that "
        "decides, and `events.query` for recent refusals. Say in plain words why it is refused or asks. Only a human "
        "can change the policy; do not try to work around it.",
    ),
}  # fmt: skip


def listed_prompts() -> list[Message]:
    return [
        {
            "name": name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {"name": argument, "description": what, "required": required}
                for argument, (what, required) in prompt.arguments.items()
            ],
        }
        for name, prompt in PROMPTS.items()
    ]


def get_prompt(params: Message) -> Message:
    name, given = params.get("name"), params.get("arguments")
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None or not isinstance(name, str):
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: there is no such prompt; there are {', '.join(PROMPTS)}"
        )
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise RpcError(INVALID_PARAMS, "Invalid params: the arguments of a prompt are texts by name")
    missing = [
        argument for argument, (_, needed) in prompt.arguments.items() if needed and not given.get(argument)
    ]
    if missing:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {name} needs {', '.join(missing)}")
    values = {
        argument: visible(given.get(argument) or _DEFAULTS.get(name, ""))[:_LONGEST_ARGUMENT]
        for argument in prompt.arguments
    }
    text = prompt.text.format_map(values)
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }


def completions(params: Message, tools: Iterable[str]) -> Message:
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref names neither a prompt nor a resource")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(INVALID_PARAMS, "Invalid params: argument has no name and value")
    wanted = (ref.get("type"), ref.get("name"), argument.get("name")) == (
        "ref/prompt",
        "explain_refusal",
        "tool",
    )
    found = [name for name in tools if name.startswith(argument["value"])] if wanted else []
    return {
        "completion": {
            "values": found[:MOST_COMPLETIONS],
            "total": len(found),
            "hasMore": len(found) > MOST_COMPLETIONS,
        }
    }
