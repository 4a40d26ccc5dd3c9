"""Recalls of the memory: how often each item was recalled, and in which conversations lately.

Callers name as many conversations as they like, so of each item only the last ones are kept, by a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate

from toolgate.features.memory.items import MemoryItem
from toolgate.features.memory.schema import COLUMNS
from toolgate.storage.tables import Statement, Tables

MOST_CONVERSATIONS = 20
_BATCH = 500


async def note(tables: Tables, ids: Sequence[str], conversation: str, now: int) -> None:
    """Count that they were recalled there."""
    wanted = sorted(set(ids))
    if not wanted:
        return
    places = ["", _digest(conversation)] if conversation else [""]
    rows = [(one, place, int(not place), now) for one in wanted for place in places]
    older = (
        "SELECT id, conversation FROM (SELECT id, conversation, ROW_NUMBER() OVER (PARTITION BY id ORDER BY last_at DESC)"
        f" AS n FROM memory_usage WHERE id IN ({_marks(wanted)}) AND conversation <> '') AS ranked WHERE n > ?"
    )
    await tables.transaction([
        Statement(
            f"INSERT INTO memory_usage (id, conversation, recalls, last_at) VALUES {', '.join(['(?, ?, ?, ?)'] * len(rows))}"
            " ON CONFLICT (id, conversation) DO UPDATE SET recalls = memory_usage.recalls + excluded.recalls,"
            " last_at = excluded.last_at",
            [value for row in rows for value in row],
        ),
        Statement(
            f"DELETE FROM memory_usage WHERE (id, conversation) IN ({older})", [*wanted, MOST_CONVERSATIONS]
        ),
    ])  # fmt: skip


async def counts(tables: Tables, ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(ids), _BATCH):
        part = ids[start : start + _BATCH]
        rows = await tables.fetch(
            f"SELECT id, SUM(recalls) AS n FROM memory_usage WHERE id IN ({_marks(part)}) GROUP BY id", *part
        )
        found |= {row["id"]: int(row["n"]) for row in rows}
    return found


async def recalled_in(
    tables: Tables, conversation: str, scope: str, since: int, most: int
) -> list[MemoryItem]:
    """The newest of them, up to so many characters."""
    rows = await tables.fetch(
        f"SELECT {', '.join('i.' + name for name in COLUMNS)} FROM memory_usage AS u JOIN memory_items AS i"
        " ON i.id = u.id WHERE u.conversation = ? AND u.last_at >= ? AND i.scope = ? AND i.state = 'kept'"
        " ORDER BY u.last_at DESC LIMIT 200",
        _digest(conversation), since, scope,
    )  # fmt: skip
    sizes = accumulate(len(row["content"]) for row in rows)
    return [MemoryItem.of(row) for row, size in zip(rows, sizes, strict=True) if size <= most]


def _digest(conversation: str) -> str:
    return hashlib.sha256(conversation.encode()).hexdigest()[:16]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
