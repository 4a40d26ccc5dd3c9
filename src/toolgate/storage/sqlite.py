"""SQLite: one writer thread per process, group commit, several processes on one file.

Jobs that arrive while a commit is under way wait for the next one and share its fsync.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
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

    async def open(self, fold: Fold) -> None:
        self._fold = fold
        self._loop = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._prepare)
            self._reader = await self._read(self._connect)
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
        if self._reader is not None:
            await self._read(self._reader.close)
            self._reader = None
        self._readers.shutdown()

    async def submit(self, work: Any, durable: bool) -> Any:
        if self._thread is None:
            raise Unavailable("the ledger is closed", "open the gate again")
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

    # --- the writer thread -------------------------------------------------------------------------------

    def _write_forever(self) -> None:
        connection = self._connect()
        synchronous = 2
        while True:
            jobs, stop = self._take()
            if jobs:
                wanted = 2 if any(job.durable for job in jobs) else 1
                if wanted != synchronous:
                    # FULL syncs the log at each commit; NORMAL survives kill -9 but not a power cut: for reads
                    connection.execute(f"PRAGMA synchronous = {wanted}")
                    synchronous = wanted
                self._commit(connection, jobs)
                self._loop.call_soon_threadsafe(_finish_all, jobs)
            if stop:
                connection.close()
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

    def _commit(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        transaction = self._fold(jobs)
        try:
            connection.execute("BEGIN IMMEDIATE")
            if _drive(transaction, connection):
                connection.execute("COMMIT")
            else:
                connection.execute("ROLLBACK")
        except BaseException as error:
            transaction.close()
            if connection.in_transaction:
                connection.rollback()
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
        deadline = self._loop.time() + seconds
        while self._loop.time() < deadline:
            version = await self._select(_data_version)
            if version != self._version:
                self._version = version
                return
            await asyncio.sleep(min(POLL, seconds))

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

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._busy_ms / 1000, isolation_level=None, check_same_thread=False
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


def _finish_all(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.finish()


def _drive(transaction: Transaction, connection: sqlite3.Connection) -> bool:
    """Answer the ledger's questions; say whether anything was written."""
    wrote = False
    try:
        query = next(transaction)
        while True:
            wrote |= type(query) is Write
            query = transaction.send(_answer(connection, query))
    except StopIteration:
        return wrote


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
                for row in db.execute(f"SELECT {_COLUMNS} FROM journal WHERE ref = ? ORDER BY seq", (ref,))
            ]
        case RowAt(seq):
            row = db.execute(f"SELECT {_COLUMNS} FROM journal WHERE seq = ?", (seq,)).fetchone()
            return Row(*row) if row else None
        case Recent(since):
            sql = "SELECT at, persona, tool FROM journal WHERE at > ? AND kind = 'started' ORDER BY seq"
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
