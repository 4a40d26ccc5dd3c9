"""Replay of a room: its posts and checks, from the ledger alone, and what a check says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.core.result import Result
    from toolgate.facade import Gate
    from toolgate.features.agents.rooms import AgentRoom

MOST = 10_000
"""Events of one room that are read."""


async def replay(gate: Gate, room: AgentRoom) -> list[dict[str, Any]]:
    """As `rooms.posts` gives them, and nothing of the tables is looked at."""
    found: list[dict[str, Any]] = []
    for row in await gate.events(Filter(conversation=room.id, kinds=("committed",), limit=MOST)):
        if row.tool == "room.post":
            result = (await gate.whole(row)).get("result") or {}
            found.append({**result, "event": row.seq})
        elif room.check and row.claim.endswith(f"/r_{room.id}/check/{_checks(found)}"):
            result = (await gate.whole(row)).get("result")
            told = gate.render(row.tool, result, room.check.get("args") or {})[:2000]
            checked = {"kind": "check", "persona": row.persona, "passed": _said_yes(result), "text": told}
            found.append({**checked, "call": row.call, "event": row.seq})
    return found


def _checks(found: Sequence[Mapping[str, Any]]) -> int:
    return sum(1 for one in found if one["kind"] == "check")


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
