"""SQLite: one writer thread per process, group commit, several processes on one file.

Jobs that arrive while a commit is under way wait for the next one and share its fsync.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from toolgate.core.errors import Unavailable
from toolgate.storage import schema
from toolgate.storage.faults import from_sqlite
from toolgate.storage.port import (
    ClaimsOf,
    Filter,
    Fold,
    Head,
    Job,
    LoadTables,
    Lock,
    Query,
    Recent,
    Row,
    RowAt,
    RowsAfter,
    RowsOf,
    Tables,
    Transaction,
    Write,
)
from toolgate.storage.select import select_rows

BUSY_MS = 10_000
MAX_BATCH = 256
POLL = 0.05
GRACE = 0.5
"""How long news stays news: for waiters that looked just before it came and wait just after."""
SLOW = 0.003
"""Seconds a commit may take before it is kept away from the event loop."""
_NORMAL, _FULL = 1, 2
_COLUMNS = ", ".join(schema.JOURNAL)
_INSERT = f"INSERT INTO journal ({_COLUMNS}) VALUES ({', '.join('?' * len(schema.JOURNAL))})"
_HEAD = "SELECT seq, at, key, hash, mac FROM head WHERE id = 1"
_SET_HEAD = (
    "INSERT INTO head (id, seq, at, key, hash, mac) VALUES (1, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "seq = excluded.seq, at = excluded.at, key = excluded.key, hash = excluded.hash, mac = excluded.mac"
)


T = TypeVar("T")


class SqliteBackend:
    name = "sqlite"

    def __init__(self, path: Path, busy_ms: int = BUSY_MS) -> None:
        self.path = path
        self._busy_ms = busy_ms
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="toolgate-read")
        self._reader: sqlite3.Connection | None = None
        self._version = -1
        self._news_at = 0.0
        self._turn = threading.Lock()
        """Who may use the ledger's state: the writer thread, or the loop for a lone caller."""
        self._here: Writer | None = None
        self._pace = 0.0
        """What a commit takes lately, in seconds."""

    async def open(self, fold: Fold) -> None:
        self._fold = fold
        self._loop = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._prepare)
            self._reader = await self._read(self._connect)
            self._here = Writer(self._connect(busy_ms=0))
        except sqlite3.Error as error:
            self._readers.shutdown()
            raise from_sqlite(error, str(self.path)) from error
        self._thread = threading.Thread(target=self._write_forever, name="toolgate-write", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        if self._here is not None:
            self._here.db.close()
            self._here = None
        if self._reader is not None:
            await self._read(self._reader.close)
            self._reader = None
        self._readers.shutdown()

    async def submit(self, work: Any, durable: bool, alone: Callable[[], bool] | None = None) -> Any:
        if self._thread is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        if alone is not None and alone() and self._pace < SLOW:
            await asyncio.sleep(0)  # whoever is ready to call gets to say so, and nobody starves
            if not alone() or not self._turn.acquire(blocking=False):
                return await self._queued(work, durable)
            try:
                job = Job(work, durable)
                if self._at_once(job):
                    return _value(job)
            finally:
                self._turn.release()
        return await self._queued(work, durable)

    async def _queued(self, work: Any, durable: bool) -> Any:
        job = Job(work, durable, self._loop.create_future())
        self._queue.put(job)
        assert job.future is not None
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            await asyncio.wait(
                (job.future,)
            )  # it is decided either way: the caller must know how before it goes
            raise

    def _at_once(self, job: Job) -> bool:
        """Commit here and now: two thread switches cost as much as the commit. Not if anything might block."""
        assert self._here is not None
        if not self._queue.empty():
            return False
        started = time.perf_counter()
        try:
            self._here.begin(job.durable)
        except sqlite3.OperationalError:
            return False  # another process is writing: wait for it on the thread
        self._commit(self._here, (job,))
        self._pace += (time.perf_counter() - started - self._pace) / 8
        return True

    # --- the writer thread -------------------------------------------------------------------------------

    def _write_forever(self) -> None:
        writer = Writer(self._connect())
        while True:
            jobs, stop = self._take()
            if jobs:
                started = time.perf_counter()
                with self._turn:
                    self._commit(writer, jobs)
                self._pace += (time.perf_counter() - started - self._pace) / 8
                self._loop.call_soon_threadsafe(_finish_all, jobs)
            if stop:
                writer.db.close()
                return

    def _take(self) -> tuple[list[Job], bool]:
        jobs: list[Job] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) >= MAX_BATCH or self._queue.empty():
                return jobs, False
            job = self._queue.get()
        return jobs, True

    def _commit(self, writer: Writer, jobs: Sequence[Job]) -> None:
        transaction = self._fold(jobs)
        try:
            if not writer.db.in_transaction:
                writer.begin(any(job.durable for job in jobs))
            writer.drive(transaction)
        except BaseException as error:
            transaction.close()
            if writer.db.in_transaction:
                writer.db.rollback()
            ours = from_sqlite(error, str(self.path)) if isinstance(error, sqlite3.Error) else error
            for job in jobs:
                job.value, job.error = None, ours

    # --- readers -----------------------------------------------------------------------------------------

    async def head(self) -> Head:
        return await self._select(_read_head)

    async def rows(self, wanted: Filter) -> list[Row]:
        sql, values = select_rows(wanted, "?")
        return await self._select(lambda db: [Row(*row) for row in db.execute(sql, values)])

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[SqliteSnapshot]:
        pool = ThreadPoolExecutor(1, thread_name_prefix="toolgate-snapshot")
        view = SqliteSnapshot(self, pool)
        try:
            await view.open()
            yield view
        finally:
            await view.close()
            pool.shutdown()

    async def changed(self, seconds: float) -> None:
        """Another process's commit changes data_version; our own are announced in process."""
        entered = self._loop.time()
        while (now := self._loop.time()) < entered + seconds:
            version = await self._select(_data_version)
            if version != self._version:
                self._version, self._news_at = version, now
            await asyncio.sleep(min(POLL, seconds))
            if self._news_at > entered - GRACE:  # whoever saw it first: it is news for everybody who waits
                return

    async def size(self) -> int:
        names = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(name.stat().st_size for name in names if name.exists())

    async def _select(self, query: Callable[[sqlite3.Connection], T]) -> T:
        reader = self._reader
        if reader is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        try:
            return await self._read(lambda: query(reader))
        except sqlite3.Error as error:
            raise from_sqlite(error, str(self.path)) from error

    async def _read(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, function)

    # --- connections -------------------------------------------------------------------------------------

    def _connect(self, busy_ms: int | None = None) -> sqlite3.Connection:
        patience = (self._busy_ms if busy_ms is None else busy_ms) / 1000
        connection = sqlite3.connect(
            self.path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")  # readers never wait for the writer
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "PRAGMA trusted_schema = OFF"
        )  # a hostile file may not run functions through its schema
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _prepare(self) -> None:
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if new:
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = self._connect()
        try:
            migrate(connection)
        finally:
            connection.close()


class Writer:
    """A connection that writes: it knows how durable its commits are."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._synchronous = _FULL

    def begin(self, durable: bool) -> None:
        """FULL syncs the log at each commit; NORMAL survives kill -9 but not a power cut, which is enough for reads."""
        wanted = _FULL if durable else _NORMAL
        if wanted != self._synchronous:
            self.db.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        self.db.execute("BEGIN IMMEDIATE")

    def drive(self, transaction: Transaction) -> None:
        """Answer the ledger's questions until it has no more."""
        try:
            query = next(transaction)
            while True:
                query = transaction.send(_answer(self.db, query))
        except StopIteration:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")  # nothing was to be written


class SqliteSnapshot:
    """A read transaction of its own connection: WAL keeps it consistent however long it takes."""

    def __init__(self, backend: SqliteBackend, pool: ThreadPoolExecutor) -> None:
        self._backend = backend
        self._pool = pool
        self._db: sqlite3.Connection | None = None

    async def open(self) -> None:
        self._db = await self._run(self._backend._connect)
        await self._ask(lambda db: db.execute("BEGIN"))

    async def close(self) -> None:
        if self._db is not None:
            await self._run(self._db.close)

    async def head(self) -> Head:
        return await self._ask(_read_head)

    async def scan(self, after: int = 0, batch: int = 5000) -> AsyncIterator[list[Row]]:
        sql = f"SELECT {_COLUMNS} FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
        while True:
            rows = await self._ask(partial(_read_rows, sql=sql, values=(after, batch)))
            if not rows:
                return
            yield rows
            after = rows[-1].seq

    async def tables(self) -> Tables:
        return await self._ask(lambda db: _load(db, tuple(schema.PROJECTIONS)))

    async def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        db = self._db
        assert db is not None
        try:
            return await self._run(lambda: query(db))
        except sqlite3.Error as error:
            raise from_sqlite(error, str(self._backend.path)) from error

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)


_as_row: Callable[[Iterable[Any]], Row] = partial(tuple.__new__, Row)
"""`Row._make` without counting: the query names exactly the columns."""


def _read_rows(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> list[Row]:
    return list(map(_as_row, db.execute(sql, values)))


def _data_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA data_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Numbered files, forward only; a file from a newer version is refused untouched."""
    if _version(connection) == schema.VERSION:
        return
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


def _value(job: Job) -> Any:
    if job.error is not None:
        raise job.error
    return job.value


def _finish_all(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.finish()


def _answer(db: sqlite3.Connection, query: Query) -> Any:
    match query:
        case Lock():
            return _read_head(db)
        case Write():
            return _write(db, query)
        case ClaimsOf(scopes):
            sql = "SELECT scope, call, digest, state, seq, expires FROM claims WHERE scope = ?"
            found = (db.execute(sql, (scope,)).fetchone() for scope in scopes)
            return {row[0]: row for row in found if row}
        case RowsAfter(seq):
            return [
                Row(*row)
                for row in db.execute(f"SELECT {_COLUMNS} FROM journal WHERE seq > ? ORDER BY seq", (seq,))
            ]
        case RowsOf(ref):
            return [
                Row(*row)
                for row in db.execute(
                    f"SELECT {_COLUMNS} FROM journal WHERE ref = ? AND ref <> '' ORDER BY seq", (ref,)
                )
            ]
        case RowAt(seq):
            row = db.execute(f"SELECT {_COLUMNS} FROM journal WHERE seq = ?", (seq,)).fetchone()
            return Row(*row) if row else None
        case Recent(since):
            # by `at` first, which never runs backwards: ordered by `seq` alone, SQLite reads the whole journal
            sql = "SELECT at, persona, tool FROM journal WHERE at > ? AND kind = 'started' ORDER BY at, seq"
            return db.execute(sql, (since,)).fetchall()
        case LoadTables():
            return _load(db, schema.IN_MEMORY)


def _read_head(db: sqlite3.Connection) -> Head:
    row = db.execute(_HEAD).fetchone()
    return Head(*row) if row else Head(0, 0, 0, schema.EMPTY_HASH, "")


def _load(db: sqlite3.Connection, names: Sequence[str]) -> dict[str, dict[Any, tuple[Any, ...]]]:
    return {
        name: {row[0]: row for row in db.execute(f"SELECT {', '.join(schema.PROJECTIONS[name])} FROM {name}")}
        for name in names
    }


_UPSERT = {name: schema.upsert(name) for name in schema.PROJECTIONS}
_DROP = {name: schema.drop(name) for name in schema.PROJECTIONS}


def _write(db: sqlite3.Connection, write: Write) -> None:
    if len(write.rows) == 1:
        db.execute(_INSERT, write.rows[0])
    else:
        db.executemany(_INSERT, write.rows)
    for (table, key), row in write.changes.items():
        if row is None:
            db.execute(_DROP[table], (key,))
        else:
            db.execute(_UPSERT[table], row)
    db.execute(_SET_HEAD, write.head[:5])
    db.execute("COMMIT")
