"""The SQLite file: opened, brought to this version's tables, and still the one at the ledger's path.

SQLite goes on writing into a file that was removed or renamed, and nobody would ever read that. So each transaction
compares what stands at the path (device and inode of the database, its log and the log's index) with what was opened,
before anything is decided. That opens none of them as such: closing it would drop SQLite's own locks.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.core.errors import SetupError, Unavailable
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

    with immediate(connection):
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
                for statement in statements_of(script.read_text()):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def statements_of(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise SetupError("a statement of a migration does not end", "end it with `;`")


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes: all of it or none. One that began by reading could not wait for another's write."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


_ENDS = ("", "-wal", "-shm")
_HEADER = 512
"""Bytes of the smallest database; SQLite takes a shorter file for a new one and removes its log."""
_FIX = "stop what uses it, put the file that was there back (or restore a backup), then open the gate again"


class DatabaseFiles:
    """Shared by the connections of one backend, each of which has just taken the write lock when it asks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names = tuple(f"{path}{end}" for end in _ENDS)
        files = [os.stat(name) for name in self._names]
        self._files = tuple(number for one in files for number in (one.st_dev, one.st_ino))
        self._size, self._written, self._log = 0, 0, 0

    def check(self, db: sqlite3.Connection) -> None:
        """Raise Unavailable if somebody took the files away, put others there or cut them."""
        main, wal, index = self._names
        try:
            first, second, third = os.stat(main), os.stat(wal), os.stat(index)
        except OSError as error:
            raise self._gone(f"{error.filename} is not there any more: {error.strerror}") from None
        found = first.st_dev, first.st_ino, second.st_dev, second.st_ino, third.st_dev, third.st_ino
        if found != self._files:
            raise self._gone("another file stands there now")
        if first.st_mtime_ns != self._written or first.st_size < self._size or second.st_size < self._log:
            self._examine(db, first.st_size)
            self._written, self._size = first.st_mtime_ns, first.st_size
        self._log = second.st_size

    def _examine(self, db: sqlite3.Connection, size: int) -> None:
        """Written in place: by SQLite when it folds its log, or by somebody else. A new look at the files must find
        what our own connection sees."""
        if size < _HEADER:
            raise self._gone(f"it was cut to {size} bytes")
        try:
            fresh = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
            try:
                if size < self._size:
                    (said,) = fresh.execute("PRAGMA quick_check(1)").fetchone()
                    if said != "ok":
                        raise self._gone(f"it was cut to {size:,} bytes: {said}")
                if _end(fresh) != _end(db):
                    raise self._gone("its content was replaced")
            finally:
                fresh.close()
        except sqlite3.Error as error:
            raise self._gone(f"it was changed by somebody else: {error}") from None

    def _gone(self, what: str) -> Unavailable:
        message = f"the ledger {self.path} was taken away while it was open ({what}); nothing runs"
        import logging

        logging.getLogger("toolgate.storage").error(message)
        return Unavailable(message, _FIX)


def _end(db: sqlite3.Connection) -> object:
    return db.execute("SELECT seq, hash FROM head").fetchone()
