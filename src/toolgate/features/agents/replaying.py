"""Replay of a room: its posts and checks, from the ledger alone, and what a check says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import Code
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.core.result import Result
    from toolgate.facade import Gate
    from toolgate.features.agents.rooms import AgentRoom

_MADE = frozenset({Code.FAILED, Code.TIMEOUT, Code.NOT_FOUND, Code.UNKNOWN_OUTCOME})
_ENDED = ("committed", "failed", "unknown")
MOST = 10_000
"""Events of one room that are read."""


async def replay(gate: Gate, room: AgentRoom) -> list[dict[str, Any]]:
    """As `rooms.posts` gives them, and nothing of the tables is looked at."""
    found: list[dict[str, Any]] = []
    for row in await gate.events(Filter(conversation=room.id, kinds=_ENDED, limit=MOST)):
        if row.tool == "room.post" and row.kind == "committed":
            result = (await gate.whole(row)).get("result") or {}
            found.append({**result, "event": row.seq})
        elif room.check and row.claim.endswith(f"/r_{room.id}/check/{_checks(found)}"):
            body = await gate.whole(row)
            result = body.get("result")
            if row.kind == "committed":
                told = gate.render(row.tool, result, room.check.get("args") or {})[:2000]
            else:
                told = str(body.get("error", ""))
            yes = row.kind == "committed" and _said_yes(result)
            checked = {"kind": "check", "persona": row.persona, "passed": yes, "text": told}
            found.append({**checked, "call": row.call, "event": row.seq})
    return found


def _checks(found: Sequence[Mapping[str, Any]]) -> int:
    return sum(1 for one in found if one["kind"] == "check")


def ran(result: Result) -> bool:
    """Whether a check was made at all, whatever it said: what was refused, or never began, says nothing."""
    return result.error is None or result.error.code in _MADE


def passed(result: Result) -> bool:
    """A program that ended with 0, a query that found something, a call that went well."""
    return result.ok and _said_yes(result.data)


def _said_yes(data: Any) -> bool:
    if isinstance(data, Mapping):
        if "exit_code" in data:
            return bool(data["exit_code"] == 0)
        if "total_matches" in data:
            return bool(data["total_matches"])
    return data is not None
