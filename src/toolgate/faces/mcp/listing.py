"""The list of tools that a persona sees over MCP: schemas, annotations from effects, pages, profiles, and its changes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from toolgate.core.decision import Verdict
from toolgate.core.effects import Effects
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError

Profile = Literal["minimal", "code", "full"]
PROFILES: tuple[str, ...] = get_args(Profile)
LOOK_SECONDS = 1.0
"""Seconds. A look costs one `stat` and a walk over the names of the tools; nobody waiting costs nothing."""
PAGE = 100
_MINIMAL = frozenset(
    {"tools.list", "tools.help", "code.read", "code.search", "code.list", "fs.edit", "fs.write"}
)
_CODE = ("tools.", "code.", "fs.", "git.", "exec.")
_WORLD = frozenset({"internet", "outside", "search", "model", "database"})
_ADDS = frozenset({"ledger", "memory", "scratch"})
"""Writes that take nothing away."""


class ToolListing:
    """Listing is not permission: whatever is called, listed or not, the gate decides."""

    def __init__(self, gate: Gate, profile: Profile | None = None) -> None:
        self._gate = gate
        self._profile = profile
        self._made: dict[str, tuple[Tool, Message]] = {}

    @property
    def profile(self) -> str:
        return self._profile or self._gate.config.mcp.profile

    def page(self, persona: str, cursor: str | None) -> tuple[list[Message], str | None]:
        """The cursor holds the last name seen, so a page stays right when tools come and go."""
        after = _decode(cursor) if cursor is not None else ""
        names = [name for name in self.names(persona) if name > after]
        tools = [self._tool(tool) for name in names[:PAGE] if (tool := self._gate.tool(name)) is not None]
        return tools, (_encode(names[PAGE - 1]) if len(names) > PAGE else None)

    def names(self, persona: str) -> list[str]:
        """Without schemas: those are worked out for the page that shows them."""
        profile, gate = self.profile, self._gate
        return [
            name
            for name in gate.tool_names()
            if _in_profile(name, profile)
            and (tool := gate.tool(name)) is not None
            and tool.listed
            and gate.judge(tool, persona=persona).verdict is not Verdict.DENY
        ]

    def stamp(self, persona: str) -> tuple[Any, ...]:
        """Changes whenever the list might have; cheap enough to look at again and again."""
        try:
            fingerprint = self._gate.policy.fingerprint
        except Exception:  # a policy that cannot be read just now refuses every call and lists nothing new
            fingerprint = ""
        return fingerprint, self.profile, tuple(self._gate.tool_names())

    def _tool(self, tool: Tool) -> Message:
        kept = self._made.get(tool.name)
        if kept is None or kept[0] is not tool:
            kept = self._made[tool.name] = (tool, as_mcp(tool))
        return kept[1]


def as_mcp(tool: Tool) -> Message:
    schema = tool.input_schema
    return {
        "name": tool.name,
        "description": tool.description or tool.name,
        "inputSchema": schema if schema.get("type") == "object" else {**schema, "type": "object"},
        "outputSchema": output_schema(tool),
        "annotations": hints(tool),
    }


def hints(tool: Tool) -> Message:
    """Hints for the client's own display; the gate trusts none of them."""
    effects: Effects = tool.effects
    reads_only = not effects.writes
    found: Message = {
        "readOnlyHint": reads_only,
        "idempotentHint": reads_only or tool.scoped,
        "openWorldHint": bool(_WORLD.intersection((*effects.reads, *effects.writes))),
    }
    if not reads_only:
        found["destructiveHint"] = not _ADDS.issuperset(effects.writes)
    return found


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


def _in_profile(name: str, profile: str) -> bool:
    if profile == "full":
        return True
    return name in _MINIMAL if profile == "minimal" else name.startswith(_CODE)


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
