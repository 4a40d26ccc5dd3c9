"""The peers on SQLite: the least a program can do to have a row of this size on disk for certain."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from bench.measure import hammer
from toolgate.storage import schema

GROUP = PRODUCERS = 64
BODY = "x" * 450
"""With ids and three hashes a row has about 800 bytes, as a journal row has."""
_INSERT = f"INSERT INTO log ({', '.join(schema.JOURNAL)}) VALUES ({', '.join('?' * len(schema.JOURNAL))})"
Row = tuple[int | str, ...]
Waiting = TypeVar("Waiting")


class RawLog:
    """A plain hash chain in one table with the journal's columns and indexes, WAL, synchronous = FULL."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        kinds = ("INTEGER" if name in schema.NUMBERS else "TEXT" for name in schema.JOURNAL[1:])
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(schema.JOURNAL[1:], kinds, strict=True))
        self.db.execute(f"CREATE TABLE log (seq INTEGER PRIMARY KEY, {columns})")
        for name in ("call", "ref"):
            self.db.execute(f"CREATE INDEX log_by_{name} ON log ({name}) WHERE {name} <> ''")
        self.seq, self.hash = 0, "0" * 64

    def next_row(self) -> Row:
        prev, self.seq = self.hash, self.seq + 1
        self.hash = hashlib.sha256(f"{self.seq}\n{BODY}\n{prev}".encode()).hexdigest()
        at, call = 1_700_000_000_000_000 + self.seq, f"c_1a1e1694e762f8ff9a0c1{self.seq // 2:07x}"
        return (
            self.seq, at, "started", call, "bench", "bench.send", "", "", "", 1, BODY, prev, self.hash, prev,
        )  # fmt: skip

    async def commit_one(self) -> None:
        """One bare durable commit: a transaction that takes the write lock, one row, and the disk."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute(_INSERT, self.next_row())
        self.db.execute("COMMIT")

    def commit(self, count: int) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(_INSERT, [self.next_row() for _ in range(count)])
        self.db.execute("COMMIT")


class GroupCommit(Generic[Waiting]):
    """A writer thread that commits what has queued up meanwhile, at most 64 rows at once."""

    def __init__(self, log: RawLog, answer: Callable[[list[Waiting]], object]) -> None:
        self._log, self._answer = log, answer
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()
        self.append = self._queue.put

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while True:
            waiting: list[Waiting] = []
            item = self._queue.get()
            while item is not None:
                waiting.append(item)
                if len(waiting) >= GROUP or self._queue.empty():
                    break
                item = self._queue.get()
            if waiting:
                self._log.commit(len(waiting))
                self._answer(waiting)
            if item is None:
                return


async def rate_of_threads(log: RawLog, seconds: float) -> float:
    """Rows per second that 64 producer threads get onto the disk, each waiting for its own row."""
    group: GroupCommit[threading.Lock] = GroupCommit(log, _release)
    counts = [0] * PRODUCERS
    begun = time.perf_counter()

    def produce(number: int) -> None:
        written = threading.Lock()
        written.acquire()
        while time.perf_counter() < begun + seconds:
            group.append(written)
            written.acquire()
            counts[number] += 1

    threads = [threading.Thread(target=produce, args=(n,), daemon=True) for n in range(PRODUCERS)]
    await asyncio.to_thread(_run_all, threads)
    rate = sum(counts) / (time.perf_counter() - begun)
    group.close()
    return rate


async def rate_of_tasks(log: RawLog, seconds: float) -> float:
    """The same with 64 tasks of one event loop, which is told once per group: the least waiting costs."""
    loop = asyncio.get_running_loop()
    group: GroupCommit[asyncio.Future[None]] = GroupCommit(
        log, lambda waiting: loop.call_soon_threadsafe(_resolve, waiting)
    )

    async def append() -> None:
        written: asyncio.Future[None] = loop.create_future()
        group.append(written)
        await written

    rate = await hammer(append, PRODUCERS, seconds)
    group.close()
    return rate


def _release(waiting: list[threading.Lock]) -> None:
    for lock in waiting:
        lock.release()


def _resolve(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        future.set_result(None)


def _run_all(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def raw_log(path: Path) -> Iterator[RawLog]:
    log = RawLog(path)
    try:
        yield log
    finally:
        log.db.close()
