"""The peers on SQLite: the least a program can do to have a row of this size on disk for certain."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

BODY = "x" * 560
"""With number, time and two hashes a row has about 700 bytes, as a journal row has."""
_INSERT = "INSERT INTO log (seq, at, body, prev, hash) VALUES (?, ?, ?, ?, ?)"
Row = tuple[int, int, str, str, str]


class RawLog:
    """A hash chain in one table without indexes, WAL, synchronous = FULL."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute(
            "CREATE TABLE log (seq INTEGER PRIMARY KEY, at INTEGER, body TEXT, prev TEXT, hash TEXT)"
        )
        self.seq, self.hash = 0, "0" * 64

    def next_row(self) -> Row:
        prev, self.seq = self.hash, self.seq + 1
        self.hash = hashlib.sha256(f"{self.seq}\n{BODY}\n{prev}".encode()).hexdigest()
        return self.seq, 1_700_000_000_000_000 + self.seq, BODY, prev, self.hash

    async def commit_one(self) -> None:
        """One bare durable commit."""
        self.db.execute(_INSERT, self.next_row())

    def commit(self, count: int) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(_INSERT, [self.next_row() for _ in range(count)])
        self.db.execute("COMMIT")


class GroupCommit:
    """A writer thread that commits what has queued up meanwhile, at most `group` rows at once."""

    def __init__(self, log: RawLog, group: int = 64) -> None:
        self._log, self._group = log, group
        self._queue: SimpleQueue[asyncio.Future[None] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    async def append(self) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(done)
        await done

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while True:
            waiting: list[asyncio.Future[None]] = []
            item = self._queue.get()
            while item is not None:
                waiting.append(item)
                if len(waiting) >= self._group or self._queue.empty():
                    break
                item = self._queue.get()
            if waiting:
                self._log.commit(len(waiting))
                self._loop.call_soon_threadsafe(_answer, waiting)
            if item is None:
                return


def _answer(waiting: Sequence[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)


@contextmanager
def raw_log(path: Path) -> Iterator[RawLog]:
    log = RawLog(path)
    try:
        yield log
    finally:
        log.db.close()
