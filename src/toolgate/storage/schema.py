"""The tables, once, for every dialect.

`journal` is append-only; the projections of it are recomputed by `verify`; `code_executions` (executions.py) and
`attachments` are under no chain and are trimmed. The first column of each projection is its key.
"""

from __future__ import annotations

VERSION = 4

JOURNAL = (
    "seq", "at", "kind", "call", "persona", "tool", "conversation", "ref", "claim", "key", "body", "prev", "hash", "mac",
)  # fmt: skip
PROJECTIONS: dict[str, tuple[str, ...]] = {
    "questions": ("id", "seq", "state", "expires"),
    "grants": ("id", "seq", "uses", "expires"),
    "pauses": ("persona", "seq"),
    "doubts": ("call", "seq"),
    "claims": ("scope", "call", "digest", "state", "seq", "expires"),
}
IN_MEMORY = ("questions", "grants", "pauses", "doubts")
"""Every process holds them and follows the journal; the questions only once it needs one. Claims are looked up one by
one."""

HEAD = ("seq", "at", "key", "hash", "mac", "live", "questions")
NUMBERS = frozenset({"seq", "at", "key", "expires", "uses"})
BLOCK = 2048
"""Events in a block whose sum is kept. Part of the tables: sums of other blocks mean something else."""
SUMS = (
    f"SELECT number, sums.hash, sums.body FROM sums JOIN journal ON seq = (number + 1) * {BLOCK} "
    "AND journal.hash = sums.hash WHERE number >= {0} AND number < {1} ORDER BY number"
)
KEEP_SUM = (
    "INSERT INTO sums (number, hash, body) VALUES ({0}, {1}, {2}) "
    "ON CONFLICT (number) DO UPDATE SET hash = excluded.hash, body = excluded.body"
)
EMPTY_HASH = "0" * 64


def upsert(table: str, mark: str = "?") -> str:
    columns = PROJECTIONS[table]
    marks = ", ".join(mark if mark == "?" else f"${n}" for n in range(1, len(columns) + 1))
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {updates}"
    )


def drop(table: str, mark: str = "?") -> str:
    return f"DELETE FROM {table} WHERE {PROJECTIONS[table][0]} = {mark if mark == '?' else '$1'}"
