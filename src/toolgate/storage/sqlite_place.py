"""Whether the files that are open are still the ones at the ledger's path.

SQLite goes on writing into a file that was removed or renamed, and nobody would ever read that. So each transaction
compares what stands at the path (device and inode of the database, its log and the log's index) with what was opened,
before anything is decided. Nothing here opens the file as such: closing it would drop SQLite's own locks.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from toolgate.core.errors import Unavailable

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
