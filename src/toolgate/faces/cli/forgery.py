"""What a forger with the database file, but without the key, could try. For the tour, on a copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolgate.ledger.chain import row_hash
from toolgate.storage.port import Row
from toolgate.storage.schema import JOURNAL


def edit(copy: Path) -> int:
    """Rewrite who approved; the event's number comes back."""
    with closing(sqlite3.connect(copy)) as database, database:
        return _rewrite(database)


def rehash(copy: Path) -> int:
    """The same, with every later hash and link computed anew."""
    with closing(sqlite3.connect(copy)) as database, database:
        event = _rewrite(database)
        columns = ", ".join(JOURNAL)
        prev = ""
        for values in database.execute(
            f"SELECT {columns} FROM journal WHERE seq >= ? ORDER BY seq", (event,)
        ).fetchall():
            row = Row(*values)
            row = row._replace(prev=prev or row.prev)
            prev = row_hash(row)
            database.execute("UPDATE journal SET prev = ?, hash = ? WHERE seq = ?", (row.prev, prev, row.seq))
        database.execute("UPDATE head SET hash = ?", (prev,))
        return event


def _rewrite(database: sqlite3.Connection) -> int:
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f'DROP TRIGGER "{trigger}"')
    (event,) = database.execute("SELECT seq FROM journal WHERE kind = 'approved'").fetchone()
    database.execute(
        "UPDATE journal SET body = replace(body, 'the tour', 'somebody') WHERE seq = ?", (event,)
    )
    return int(event)
