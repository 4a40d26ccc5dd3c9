"""A gate with one tool that asks, and a witness of what really ran."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.clock import Clock

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "helper",
    "personas": {"helper": {"phase": "experiment"}, "other": {"phase": "experiment"}},
}


@asynccontextmanager
async def doors(
    project: Path, description: str = "Open a door.", clock: Clock | None = None, **config: Any
) -> AsyncIterator[tuple[toolgate.Gate, list[str]]]:
    opened: list[str] = []

    @toolgate.tool("door.open", writes=["outside"], description=description)
    async def open_door(room: str) -> str:
        opened.append(room)
        return room

    async with toolgate.open(project, CONFIG | config, tools=[open_door], clock=clock) as gate:
        yield gate, opened


async def approve(gate: toolgate.Gate, room: str, **more: Any) -> str:
    """Ask about opening a door, and approve; the question's id comes back."""
    asked = await gate.call("door.open", {"room": room}, wait=False, **more)
    question: str = asked.data["question"]
    await gate.answer(question, "approve")
    return question


def change_database(project: Path, *statements: str) -> None:
    """What somebody with write access to the database can do: also remove the triggers."""
    with closing(sqlite3.connect(project / ".toolgate" / "ledger.db", isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


NO_TRIGGERS = ("DROP TRIGGER journal_no_update", "DROP TRIGGER journal_no_delete")
