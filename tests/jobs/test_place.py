"""The jobs' database on SQLite: what its tables ask of SQLite is there, whatever its version."""

from __future__ import annotations

import time
from pathlib import Path

import sqlalchemy as sa

from toolgate.features.jobs.place import JobsPlace


def test_a_moment_in_milliseconds_is_known_to_an_older_sqlite(tmp_path: Path) -> None:
    """As DBOS has it in its tables on Python 3.12 and later."""
    engine = JobsPlace(tmp_path).connect()
    with engine.begin() as db:
        db.execute(
            sa.text("CREATE TABLE t (x INTEGER, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
        )
        before = time.time() * 1000
        db.execute(sa.text("INSERT INTO t (x) VALUES (1)"))
        ((at, kind),) = db.execute(sa.text("SELECT at, typeof(at) FROM t")).all()
    engine.dispose()
    assert before - 2 <= at <= time.time() * 1000 + 2
    assert kind in ("integer", "real")
