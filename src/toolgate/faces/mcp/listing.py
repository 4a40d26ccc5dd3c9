"""The list of tools that a persona sees over MCP: profiles, names, schemas, annotations from effects, pages and changes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from toolgate.core.decision import Verdict
from toolgate.core.effects import Effects
from toolgate.core.functions import wire_names
from toolgate.core.paths import MountPath
from toolgate.core.rendering import lean
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError
from toolgate.feature import built_in
from toolgate.policy.globs import text_glob

Profile = str | tuple[str, ...]
"""One of PROFILES, or names and globs of tools."""
PROFILES = ("minimal", "code", "full")
LOOK_SECONDS = 1.0
"""Seconds. A look costs one `stat` and a walk over the names of the tools; nobody waiting costs nothing."""
PAGE = 100
FINDING = ("tools.call", "tools.find")
"""Listed wherever a list does not have everything."""
MINIMAL = frozenset({*FINDING, "fs.edit", "fs.list", "fs.read", "fs.search", "fs.write"})
CODE = MINIMAL | {
    "code.diff", "code.log", "code.outline", "code.show", "exec.python", "exec.shell", "fs.patch",
}  # fmt: skip
SECOND = frozenset({"code.list", "code.read", "code.search"})
"""What `fs.list`, `fs.read` and `fs.search` do, too. Called as ever, and not listed beside them."""
MOST_CHARACTERS, MOST_ASKED_FOR, MOST_TOOLS = 24_000, 100_000, 100
"""Above which a list is cut to the few tools that are always needed: of the `code` profile, and of a larger one that
somebody asked for."""
_WORLD = frozenset({"internet", "outside", "search", "model", "database"})
_ADDS = frozenset({"ledger", "memory", "scratch"})
"""Writes that take nothing away."""
_SAID = frozenset({MountPath.told})
"""The server's instructions say it once."""


class ToolListing:
    """Listing is not permission: whatever is called, listed or not, the gate decides."""

    def __init__(self, gate: Gate, profile: Profile | None = None) -> None:
        self._gate = gate
        self._profile = profile
        self._made: dict[str, tuple[Tool, Message]] = {}
        self._names: tuple[tuple[str, ...], dict[str, str]] = ((), {})

    def profile(self, persona: str) -> Profile:
        spec = self._gate.config.mcp
        return self._profile or spec.personas.get(persona, spec.profile)

    def page(
        self, persona: str, cursor: str | None, structured: bool = False
    ) -> tuple[list[Message], str | None]:
        """The cursor holds the last name seen, so a page stays right when tools come and go."""
        after = _decode(cursor) if cursor is not None else ""
        names = [name for name in self.names(persona) if name > after]
        shown = self.shown_names()
        tools = [
            {"name": shown.get(name, name), **self._tool(tool), **(_output(tool) if structured else {})}
            for name in names[:PAGE]
            if (tool := self._gate.tool(name)) is not None
        ]
        return tools, (_encode(names[PAGE - 1]) if len(names) > PAGE else None)

    def names(self, persona: str) -> list[str]:
        """The tools that are listed, by their own names."""
        profile, gate = self.profile(persona), self._gate
        found = {
            name: tool
            for name in gate.tool_names()
            if _in_profile(name, profile)
            and (tool := gate.tool(name)) is not None
            and tool.listed
            and gate.judge(tool, persona=persona).verdict is not Verdict.DENY
        }
        if not self._cut(list(found.values()), profile):
            return list(found)
        core = MINIMAL if profile == "minimal" else CODE
        return sorted({name for name in found if name in core}.union(FINDING))

    def _cut(self, tools: list[Tool], profile: Profile) -> bool:
        wanted = self._gate.config.mcp.list
        if wanted != "auto":
            return wanted == "find"
        most = MOST_CHARACTERS if profile in ("minimal", "code") else MOST_ASKED_FOR
        return len(tools) > MOST_TOOLS or sum(len(orjson.dumps(self._tool(tool))) for tool in tools) > most

    def shown_names(self) -> dict[str, str]:
        """What clients call each tool. Several of them refuse dots; two tools never share a name."""
        if self._gate.config.mcp.names == "dotted":
            return {}
        names, registry = tuple(self._gate.tool_names()), self._gate.services.registry
        if names != self._names[0]:
            self._names = (names, wire_names(names, lambda short, name: registry.canonical(short) == name))
        return self._names[1]

    def meant(self, shown: str) -> str:
        """The tool that a client means: a name of ours in any spelling, or one that only a list has."""
        if self._gate.services.registry.canonical(shown) is not None:
            return shown
        return next((name for name, short in self.shown_names().items() if short == shown), shown)

    def stamp(self, persona: str) -> tuple[Any, ...]:
        """Changes whenever the list might have; cheap enough to look at again and again."""
        try:
            fingerprint = self._gate.policy.fingerprint
        except Exception:  # a policy that cannot be read just now refuses every call and lists nothing new
            fingerprint = ""
        return fingerprint, self._gate.config.mcp, tuple(self._gate.tool_names())

    def _tool(self, tool: Tool) -> Message:
        kept = self._made.get(tool.name)
        if kept is None or kept[0] is not tool:
            kept = self._made[tool.name] = (tool, as_mcp(tool))
        return kept[1]


def as_mcp(tool: Tool) -> Message:
    """Without its name, which depends on what other tools there are."""
    schema = lean(tool.input_schema, ours=tool.origin == "native", said=_SAID)
    return {
        "description": " ".join(tool.description.split()) if tool.origin == "native" else tool.description,
        "inputSchema": schema if schema.get("type") == "object" else {**schema, "type": "object"},
        "annotations": hints(tool),
    }


def hints(tool: Tool) -> Message:
    """Hints for the client's own display; the gate trusts none of them. What the protocol takes for granted is not said."""
    effects: Effects = tool.effects
    if tool.forwards is not None:
        return {"readOnlyHint": False}
    reads_only = not effects.writes
    found: Message = {"readOnlyHint": reads_only}
    if not reads_only and tool.scoped:
        found["idempotentHint"] = True
    if not reads_only and _ADDS.issuperset(effects.writes):
        found["destructiveHint"] = False
    if not _WORLD.intersection((*effects.reads, *effects.writes)):
        found["openWorldHint"] = False
    return found


def _output(tool: Tool) -> Message:
    return {"outputSchema": output_schema(tool)}


def output_schema(tool: Tool) -> Message:
    """The whole result. `data` is the tool's own shape when it is ok and nothing had to be cut; else what helps."""
    own = dict(tool.output_schema or {})
    shared = own.pop("$defs", None)
    schema: Message = {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "tool": {"type": "string"},
            "data": {"anyOf": [own, {}]} if own else {},
            "error": _ERROR,
            "meta": _META,
        },
        "required": ["ok", "tool", "data", "error", "meta"],
    }
    return schema | {"$defs": shared} if shared else schema


_ERROR: Message = {
    "anyOf": [
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("code", "message", "fix")},
            "required": ["code", "message", "fix"],
        },
        {"type": "null"},
    ]
}
_META: Message = {
    "type": "object",
    "properties": {
        "call_id": {"type": "string"},
        "event_id": {"type": ["integer", "null"]},
        "duration_ms": {"type": "number"},
        "tokens": {"type": "integer"},
        "cached": {"type": "boolean"},
        "truncated": {"type": "boolean"},
    },
}


def _in_profile(name: str, profile: Profile) -> bool:
    """Of a list, what it names; else of toolgate's own tools those of the profile, and beside them whatever else a project
    has: its own tools, and those of the servers that it put behind the gate."""
    if not isinstance(profile, str):
        return any(_glob(one).matches(name) for one in profile)
    if profile == "minimal":
        return name in MINIMAL
    return name not in SECOND if profile == "full" else name in CODE or name not in _own()


@lru_cache(maxsize=256)
def _glob(text: str) -> Any:
    return text_glob(text)


@lru_cache(maxsize=1)
def _own() -> frozenset[str]:
    return frozenset(name for each in built_in() for family in each.families for name in family.names)


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decode(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise RpcError(
            INVALID_PARAMS, "Invalid params: the cursor is none of ours; begin without one"
        ) from None


@dataclass(eq=False)
class _Watcher:
    persona: str
    tell: Callable[[], None]
    seen: tuple[Any, ...]
    names: list[str] | None = None
    """Not worked out until something has changed: a start should not wait for it."""


class ListChanges:
    def __init__(self, listing: ToolListing, every: float = LOOK_SECONDS) -> None:
        self._listing = listing
        self._every = every
        self._watchers: set[_Watcher] = set()
        self._task: asyncio.Task[None] | None = None

    def join(self, persona: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Be told of changes from now on; what comes back ends it."""
        watcher = _Watcher(persona, tell, self._listing.stamp(persona))
        self._watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        return lambda: self._watchers.discard(watcher)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while self._watchers:
            await asyncio.sleep(self._every)
            for watcher in list(self._watchers):
                self._look(watcher)
        self._task = None

    def _look(self, watcher: _Watcher) -> None:
        stamp = self._listing.stamp(watcher.persona)
        if stamp == watcher.seen:
            return
        watcher.seen = stamp
        try:
            names = self._listing.names(watcher.persona)
        except Exception:  # the policy cannot be read just now; the next change will tell
            return
        if names != watcher.names:
            watcher.names = names
            watcher.tell()
