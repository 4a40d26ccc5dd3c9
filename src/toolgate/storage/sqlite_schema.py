"""Opening a SQLite file and bringing it to this version's tables."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.core.errors import Unavailable
from toolgate.storage import schema

PAGE = 2048
"""Bytes. A commit writes three pages whatever it changes, and two rows fit into one: half of SQLite's usual."""
_AGAIN_S = 0.005


def connect(path: Path, busy_ms: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=busy_ms / 1000, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA page_size = {PAGE}")  # of a new file; one that is there keeps its own
    _keep_a_log(connection, busy_ms)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA recursive_triggers = ON")  # what is replaced is deleted, and that is refused
    # a hostile file may not run functions through its schema
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _keep_a_log(connection: sqlite3.Connection, busy_ms: int) -> None:
    """WAL: readers never wait for the writer. SQLite itself does not wait where two switch a new file at once, for
    each holds what the other needs: it gives up at once, and whoever comes second has to try again."""
    until = time.monotonic() + busy_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_AGAIN_S)


def migrate(connection: sqlite3.Connection) -> None:
    """Numbered files, forward only; a file from a newer version is refused untouched."""
    if _version(connection) == schema.VERSION:
        return
    from importlib import resources  # an old file is rare, and this takes as long as the rest of opening one

    with _immediate(connection):
        have = _version(connection)
        if have > schema.VERSION:
            raise Unavailable(
                f"this ledger has schema {have}, this toolgate knows {schema.VERSION}", "upgrade toolgate"
            )
        for script in sorted(
            resources.files("toolgate.storage").joinpath("sql").iterdir(), key=lambda f: f.name
        ):
            dialect, number, *_ = script.name.split("_")
            if dialect == "sqlite" and int(number) > have:
                for statement in _statements(script.read_text()):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
