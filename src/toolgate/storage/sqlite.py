"""SQLite: one writer thread per process, group commit, several processes on one file.

Jobs that arrive while a commit is under way wait for the next one and share its fsync.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.errors import Unavailable
from toolgate.storage import executions, schema
from toolgate.storage.faults import from_sqlite
from toolgate.storage.port import Filter, Fold, Head, Row, Submission, Sum, Transaction, finish, spoil
from toolgate.storage.schema import AttachedBytes, Grown
from toolgate.storage.sqlite_file import DatabaseFiles, connect, immediate, migrate
from toolgate.storage.sqlite_sql import (
    SqliteSnapshot,
    SqliteWriter,
    data_version,
    first_since,
    read_head,
    rows_of,
)

if TYPE_CHECKING:
    import logging
    from concurrent.futures import ThreadPoolExecutor

    from toolgate.storage.executions import Counted, ExecutionRow, Executions, Keep

BUSY_MS = 10_000
MAX_BATCH = 256
POLL = 0.05
GRACE = 0.5
"""How long news stays news: for waiters that looked just before it came and wait just after."""
TURN = 0.005
"""Seconds after which the event loop gets a turn, however fast the commits are."""
FOLD_EVERY = 500
SLOW = 0.003
"""Seconds a commit may take before it is kept away from the event loop."""

T = TypeVar("T")


class SqliteBackend:
    name = "sqlite"

    def __init__(self, path: Path, busy_ms: int = BUSY_MS) -> None:
        self.path = path
        self._busy_ms = busy_ms
        self._queue: SimpleQueue[Submission | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._reader: sqlite3.Connection | None = None
        self._version = -1
        self._news_at = 0.0
        self._turn = threading.Lock()
        """Who may use the ledger's state: the writer thread, or the loop for a lone caller."""
        self._here: SqliteWriter | None = None
        self._yielded = 0.0
        self._unfolded = 0
        """Commits on the event loop since the log was last folded into the database file."""
        self._pace = 0.0
        """What a commit takes lately, in seconds."""

    async def begun(self) -> bool:
        """A file that holds something counts: whoever made it had a key, and it may be damaged."""
        return self.path.exists() and self.path.stat().st_size > 0

    async def open(self, fold: Fold) -> None:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        self._fold = fold
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="toolgate-read")
        try:
            (await asyncio.to_thread(self._prepare)).close()
            self._reader, here, there = await self._read(self._connect)
            place = DatabaseFiles(self.path)
        except sqlite3.Error as error:
            self._readers.shutdown()
            raise from_sqlite(error, str(self.path)) from error
        except OSError as error:  # its files were taken away at once
            self._readers.shutdown()
            raise Unavailable(f"{error.filename}: {error.strerror}", "open the gate again") from error
        self._here = SqliteWriter(here, place)
        self._thread = threading.Thread(
            target=self._write_forever, args=(SqliteWriter(there, place),), name="toolgate-write", daemon=True
        )
        self._thread.start()

    async def close(self) -> None:
        thread, self._thread = self._thread, None  # what comes now would wait for nobody
        if thread is not None:
            self._queue.put(None)
            await self._loop.run_in_executor(None, thread.join)
        if self._here is not None:
            self._here.db.close()
            self._here = None
        if self._reader is not None:
            await self._read(self._reader.close)
            self._reader = None
        if self._readers is not None:
            self._readers.shutdown()

    def at_once(self, job: Submission) -> bool:
        """Here, on the event loop: two thread switches cost as much as the commit."""
        started = time.monotonic()
        if started - self._yielded > TURN or self._pace >= SLOW or not self._turn.acquire(False):
            return False
        try:
            here = self._here
            if here is None or not self._queue.empty():
                return False
            try:
                head = here.begin(job.durable)
            except Unavailable:
                here.leave()
                raise
            except sqlite3.Error:
                here.leave()
                return False  # another process is writing: wait for it on the thread, which also says what else is wrong
            if not self._commit(here, (job,), head):
                return False  # others write: wait for them on the thread
        finally:
            self._turn.release()
        self._pace += (time.monotonic() - started - self._pace) / 8
        self._unfolded += 1
        if self._unfolded >= FOLD_EVERY and self._reader is not None and self._readers is not None:
            self._unfolded = 0
            self._readers.submit(_fold_log, self._reader, self._turn)
        if job.error is not None:
            raise job.error
        return True

    async def submit(self, job: Submission, alone: Callable[[], bool] | None = None) -> Any:
        if self._thread is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        if alone is not None and alone() and self._pace < SLOW and time.monotonic() - self._yielded > TURN:
            import asyncio

            await asyncio.sleep(0)  # whoever is ready to call gets to say so, and nobody starves
            self._yielded = time.monotonic()
            if alone() and self.at_once(job):
                return job.value
        job.future = self._loop.create_future()
        self._queue.put(job)
        return await job.outcome()

    # --- the writer thread -------------------------------------------------------------------------------

    def _write_forever(self, writer: SqliteWriter) -> None:
        while True:
            jobs, stop = self._take()
            if jobs:
                started = time.monotonic()
                with self._turn:
                    if self._here is not None:
                        self._here.unsettle()
                    while not self._commit(writer, jobs):
                        pass  # no two guesses in a row are wrong: the second time it is asked
                self._pace += (time.monotonic() - started - self._pace) / 8
                self._loop.call_soon_threadsafe(finish, jobs)
            if stop:
                writer.db.close()
                return

    def _take(self) -> tuple[list[Submission], bool]:
        jobs: list[Submission] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) >= MAX_BATCH or self._queue.empty():
                return jobs, False
            job = self._queue.get()
        return jobs, True

    def _commit(self, writer: SqliteWriter, jobs: Sequence[Submission], head: Head | None = None) -> bool:
        """Whether all that can be done was done; not after a wrong guess, which leaves nothing behind."""
        transaction: Transaction | None = None
        try:
            if head is None:
                head = writer.begin(any(job.durable for job in jobs))
            transaction = self._fold(jobs, head)
            writer.drive(transaction, head)
        except BaseException as error:
            if transaction is not None:
                transaction.close()
            writer.leave()
            if isinstance(error, Exception) and writer.mistaken():
                spoil(jobs, None)
                return False
            spoil(jobs, from_sqlite(error, str(self.path)) if isinstance(error, sqlite3.Error) else error)
        return True

    # --- readers -----------------------------------------------------------------------------------------

    async def head(self) -> Head:
        return await self._select(read_head)

    async def rows(self, wanted: Filter) -> list[Row]:
        return await self._select(lambda db: rows_of(db, wanted))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[SqliteSnapshot]:
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1, thread_name_prefix="toolgate-snapshot")
        view = SqliteSnapshot(self.path, self._busy_ms, pool)
        try:
            await view.open()
            yield view
        finally:
            await view.close()
            pool.shutdown()

    async def changed(self, seconds: float) -> None:
        """Another process's commit changes data_version; our own are announced in process."""
        import asyncio

        entered = self._loop.time()
        while (now := self._loop.time()) < entered + seconds:
            version = await self._select(data_version)
            if version != self._version:
                self._version, self._news_at = version, now
            await asyncio.sleep(min(POLL, seconds))
            if self._news_at > entered - GRACE:  # whoever saw it first: it is news for everybody who waits
                return

    async def size(self) -> int:
        names = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(name.stat().st_size for name in names if name.exists())

    async def sums(self, first: int, end: int) -> list[Sum]:
        sql = schema.SUMS.format("?", "?")
        return await self._select(lambda db: [Sum(*row) for row in db.execute(sql, (first, end))])

    async def keep_sums(self, sums: Sequence[Sum]) -> None:
        await self._select(lambda db: _keep_sums(db, sums))

    # --- attachments -------------------------------------------------------------------------------------

    async def attachment(self, seq: int) -> str | None:
        found = await self._select(lambda db: db.execute(schema.ATTACHED.format("?"), (seq,)).fetchone())
        return found[0] if found else None

    async def grown(self, since: int) -> list[Grown]:
        sql = schema.GROWN.format("seq >= ?")
        return await self._select(
            lambda db: [Grown(*row) for row in db.execute(sql, (first_since(db, since),))]
        )

    async def attachments(self) -> list[AttachedBytes]:
        return await self._select(
            lambda db: [AttachedBytes(*row) for row in db.execute(schema.ATTACHED_KEPT)]
        )

    # --- code_executions ---------------------------------------------------------------------------------

    async def add_execution(self, row: ExecutionRow, keep: Keep) -> None:
        await self._select(lambda db: _add_execution(db, row, keep))

    async def executions(self, wanted: Executions) -> list[ExecutionRow]:
        sql, values = executions.select(wanted, "?")
        return await self._select(lambda db: [executions.as_row(row) for row in db.execute(sql, values)])

    async def count_executions(self, wanted: Executions) -> list[Counted]:
        sql, values = executions.count(wanted, "?")
        return await self._select(lambda db: [executions.as_counted(row) for row in db.execute(sql, values)])

    async def _select(self, query: Callable[[sqlite3.Connection], T]) -> T:
        reader = self._reader
        if reader is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        try:
            return await self._read(lambda: query(reader))
        except sqlite3.Error as error:
            raise from_sqlite(error, str(self.path)) from error

    async def _read(self, function: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._readers, function)

    # --- connections -------------------------------------------------------------------------------------

    def _prepare(self) -> sqlite3.Connection:
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if new:
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = connect(self.path, self._busy_ms)
        try:
            migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> tuple[sqlite3.Connection, sqlite3.Connection, sqlite3.Connection]:
        """To read, to write on the event loop, to write on the thread. All wait for whoever else opens this file;
        the one on the loop waits for nobody from then on."""
        reader, here, there = (connect(self.path, self._busy_ms) for _ in range(3))
        here.execute("PRAGMA wal_autocheckpoint = 0")  # it would hold up the event loop
        here.execute("PRAGMA busy_timeout = 0")
        return reader, here, there


def _log() -> logging.Logger:
    import logging

    return logging.getLogger("toolgate.storage")


def _fold_log(db: sqlite3.Connection, turn: threading.Lock) -> None:
    """Move the log's pages into the database file. Most of it while others write; the rest, which is little, while
    nobody here does: only a log that is folded to its end is begun anew, and one that never is grows without end."""
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        with turn:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        _log().warning("the database's log could not be folded: %s", error)


def _add_execution(db: sqlite3.Connection, row: ExecutionRow, keep: Keep) -> None:
    """On the connection that otherwise reads: it is not the ledger's, and no caller waits for the disk."""
    db.execute("PRAGMA synchronous = NORMAL")
    with immediate(db):
        db.execute(executions.insert("?"), row[1:])
        for sql, value in executions.trims(keep, row.created_at, "?"):
            db.execute(sql, (value,))


def _keep_sums(db: sqlite3.Connection, sums: Sequence[Sum]) -> None:
    """A cache: where it cannot be written now it is made again."""
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        with immediate(db):
            db.executemany(schema.KEEP_SUM.format("?", "?", "?"), sums)
    except sqlite3.Error as error:
        _log().debug("sums could not be kept: %s", error)
