"""Sessions: a long conversation divided by day or week at a set time, by hand, or not at all.

A session is a stretch of time of one conversation, and gives its summary an id of its own. Nothing is moved: an item belongs
to the session in whose time it was stored.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from toolgate.core.call import new_id
from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import Conflict
from toolgate.features.memory.config import SessionsSpec
from toolgate.features.memory.periods import begin_of
from toolgate.features.memory.store import Writer
from toolgate.storage.tables import Statement, Tables

_ALL = "id, scope, conversation, name, began_at, ended_at, call"


class MemorySession(NamedTuple):
    id: str
    scope: str
    conversation: str
    name: str
    began_at: int
    ended_at: int | None
    call: str

    def shown(self) -> dict[str, Any]:
        ended = iso(self.ended_at) if self.ended_at is not None else None
        told = {
            "id": self.id,
            "name": self.name,
            "chat_id": self.conversation,
            "began_at": iso(self.began_at),
            "ended_at": ended,
        }
        return {name: value for name, value in told.items() if value not in (None, "")}


def boundary(began: int, spec: SessionsSpec, zone: tzinfo) -> int | None:
    """When a session that began then ends by itself: at the set time of the next day, or of the next Monday."""
    if spec.auto_divide == "none":
        return None
    day = datetime.fromtimestamp(began / SECOND, zone).date()
    for _ in range(9):
        if spec.auto_divide == "daily" or day.weekday() == 0:
            moment = begin_of(day, zone, spec.at)
            if moment > began:
                return moment
        day += timedelta(days=1)
    return None


class Sessions:
    def __init__(self, tables: Tables, spec: SessionsSpec, zone: tzinfo) -> None:
        self._tables, self._spec, self._zone = tables, spec, zone

    async def touch(self, scope: str, conversation: str, now: int) -> None:
        """There is a session for what is said now; one whose time is over ends when it should have."""
        found = await self.open(scope, conversation)
        if found is not None:
            end = boundary(found.began_at, self._spec, self._zone)
            if end is None or end > now:
                return
            await self._end(found, end)
        await self._tables.execute(
            f"INSERT INTO memory_sessions ({_ALL}) VALUES (?, ?, ?, '', ?, NULL, '') ON CONFLICT DO NOTHING",
            new_id("s"), scope, conversation, now,
        )  # fmt: skip

    async def begin(self, scope: str, conversation: str, name: str, by: Writer) -> MemorySession:
        """End the present one and begin another, as one."""
        made = MemorySession(new_id("s"), scope, conversation, name, by.now, None, by.call)
        await self._tables.transaction(
            [
                Statement(
                    "UPDATE memory_sessions SET ended_at = ? WHERE scope = ? AND conversation = ? AND ended_at IS NULL",
                    (by.now, scope, conversation),
                ),
                Statement(f"INSERT INTO memory_sessions ({_ALL}) VALUES (?, ?, ?, ?, ?, ?, ?)", tuple(made)),
            ]
        )  # fmt: skip
        return made

    async def take_back(self, call: str) -> None:
        """The one that a call began goes, and the one before it goes on."""
        rows = await self._tables.fetch(f"SELECT {_ALL} FROM memory_sessions WHERE call = ?", call)
        if not rows or rows[0]["ended_at"] is not None:
            raise Conflict("the session has ended, or was taken back already", "begin another one")
        mine = MemorySession(**rows[0])
        same = (mine.scope, mine.conversation)
        await self._tables.transaction(
            [
                Statement("DELETE FROM memory_sessions WHERE id = ?", (mine.id,)),
                Statement(
                    "UPDATE memory_sessions SET ended_at = NULL WHERE scope = ? AND conversation = ? AND ended_at = ?",
                    (*same, mine.began_at),
                ),
            ]
        )  # fmt: skip

    async def happened(self, call: str) -> bool:
        return bool(await self._tables.fetch("SELECT id FROM memory_sessions WHERE call = ?", call))

    async def open(self, scope: str, conversation: str) -> MemorySession | None:
        rows = await self._tables.fetch(
            f"SELECT {_ALL} FROM memory_sessions WHERE scope = ? AND conversation = ? AND ended_at IS NULL",
            scope, conversation,
        )  # fmt: skip
        return MemorySession(**rows[0]) if rows else None

    async def archive(self, now: int) -> int:
        """End those whose time is over; how many."""
        rows = await self._tables.fetch(f"SELECT {_ALL} FROM memory_sessions WHERE ended_at IS NULL")
        due = [
            (one, boundary(one.began_at, self._spec, self._zone))
            for one in (MemorySession(**row) for row in rows)
        ]
        for one, end in (over := [(one, end) for one, end in due if end is not None and end <= now]):
            await self._end(one, end)
        return len(over)

    async def ended(self, scope: str) -> list[MemorySession]:
        rows = await self._tables.fetch(
            f"SELECT {_ALL} FROM memory_sessions WHERE scope = ? AND ended_at IS NOT NULL ORDER BY began_at",
            scope,
        )
        return [MemorySession(**row) for row in rows]

    async def _end(self, session: MemorySession, at: int) -> None:
        await self._tables.execute(
            "UPDATE memory_sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", at, session.id
        )
