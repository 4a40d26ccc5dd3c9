"""SQL of SQLite: what it answers to the ledger's questions, and a consistent view of it for long reading."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.errors import LedgerBroken
from toolgate.core.records import replace
from toolgate.storage import schema
from toolgate.storage.faults import from_sqlite
from toolgate.storage.port import (
    CUT,
    FREE,
    KEPT,
    ClaimsOf,
    Filter,
    Head,
    Heavy,
    LoadTables,
    Query,
    Recent,
    Row,
    RowAt,
    RowsAfter,
    RowsOf,
    Sweep,
    Tables,
    Transaction,
    Write,
)
from toolgate.storage.schema import select_rows
from toolgate.storage.sqlite_file import connect

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from toolgate.storage.sqlite_file import DatabaseFiles

_NORMAL, _FULL = 1, 2
COLUMNS = ", ".join(schema.JOURNAL)
_INSERT = f"INSERT INTO journal ({COLUMNS}) VALUES ({', '.join('?' * len(schema.JOURNAL))})"
_HEAD = f"SELECT {', '.join(schema.HEAD)} FROM head WHERE id = 1"
_SET_HEAD = (
    f"UPDATE head SET {', '.join(f'{name} = ?{n}' for n, name in enumerate(schema.HEAD, 1))} "
    "WHERE id = 1 AND seq = ?9 AND hash = ?10"  # ?8 is the clock, which SQLite has none of
)
CALM = 8
"""So many transactions in a row on the head we left ourselves mean that we are alone."""
IMPATIENT = 1 << 20


class Elsewhere(Exception):
    """The head is not where it was believed to be: what was decided on it does not hold."""


class SqliteWriter:
    """A connection that writes: it knows how durable its commits are, and where it left the head.

    While nobody else writes, nothing is asked before a write: the ledger decides on the head we left, and the write
    moves the head only from there. After a wrong guess, which costs the ledger its state, we ask for twice as long."""

    def __init__(self, db: sqlite3.Connection, place: DatabaseFiles) -> None:
        self.db = db
        self._place = place
        self._run = db.cursor().execute
        """One cursor for all statements: a new one for each takes as long as a short statement."""
        self._synchronous = _FULL
        self._left: Head | None = None
        self._version = -1
        """The file's, when we last asked: while it is the same, nobody else has written."""
        self._calm = 0
        self._patience = CALM
        self._guessed = False
        self._committing = False

    def begin(self, durable: bool) -> Head:
        """Take the lock; the head as it is then, or as it must be if we are alone. FULL syncs the log at each commit;
        NORMAL survives kill -9 but not a power cut, which is enough for reads."""
        self._guessed = self._committing = False  # whatever the transaction before did
        wanted = _FULL if durable else _NORMAL
        if wanted != self._synchronous:
            self._run(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted
        self._run("BEGIN IMMEDIATE")
        self._place.check(self.db)
        head, self._left = self._left, None
        if head is not None and self._calm >= self._patience:
            self._guessed = True
            return head
        if self._moved() or head is None:
            self._calm = 0
            return read_head(self.db)
        self._calm += 1
        return head

    def leave(self) -> None:
        """Whatever was begun is undone."""
        if self.db.in_transaction:
            self.db.rollback()

    def unsettle(self) -> None:
        """Somebody else writes."""
        self._calm = 0

    def mistaken(self) -> bool:
        """Whether what went wrong may have gone wrong because of a guess, with nothing written: then, not again."""
        if not self._guessed or self._committing:
            return False
        self._calm, self._patience = 0, min(2 * self._patience, IMPATIENT)
        self._guessed = False
        return True

    def drive(self, transaction: Transaction, head: Head) -> None:
        """Answer the ledger's questions until it has no more."""
        db = self.db
        try:
            for query in transaction:
                while type(query) is not Write:
                    if self._guessed and type(query) is not ClaimsOf and self._moved():
                        raise Elsewhere  # no state is read under a head that is not its own
                    query = transaction.send(_answer(db, query))
                self._write(query, head)
                head = query.head
        except StopIteration:
            pass  # it had seen enough
        if db.in_transaction:  # nothing was to be recorded
            if self._guessed and self._moved():
                raise Elsewhere
            self._run("COMMIT")
        self._left = head

    def _write(self, write: Write, head: Head) -> None:
        run = self._run
        if len(write.rows) == 1:
            run(_INSERT, write.rows[0])
        else:
            self.db.executemany(_INSERT, write.rows)
        if write.changes:
            _project(self.db, write.changes)
        if write.archived:
            _take_out(self.db, write.archived, write.head.at)
        if write.attached:
            self.db.executemany(schema.attach("?"), write.attached)
            for sql, values in schema.trim_attached(write.attached, write.head.at, write.budget, "?"):
                run(sql, values)
        if run(_SET_HEAD, write.head + (head[0], head[3])).rowcount != 1:  # noqa: RUF005 - half the steps
            if self._guessed:
                raise Elsewhere
            raise LedgerBroken(
                "the ledger has no head", "restore a backup; `toolgate ledger verify` says more"
            )
        self._committing = True
        run("COMMIT")

    def _moved(self) -> bool:
        """Whether somebody else has written since we last asked."""
        (version,) = self._run("PRAGMA data_version").fetchone()
        before, self._version = self._version, version
        return bool(version != before)


def _take_out(db: sqlite3.Connection, last: int, now: int) -> None:
    """Rows that are in an archive. The trigger is there again when anybody else can write."""
    db.execute("DROP TRIGGER IF EXISTS journal_no_delete")
    db.execute("DELETE FROM journal WHERE seq <= ?", (last,))
    db.execute(
        "CREATE TRIGGER journal_no_delete BEFORE DELETE ON journal "
        "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
    )
    db.execute("DELETE FROM attachments WHERE seq <= ?", (last,))
    db.execute("DELETE FROM claims WHERE expires <= ?", (now,))


def _answer(db: sqlite3.Connection, query: Query) -> Any:
    match query:
        case ClaimsOf(scopes):
            sql = f"SELECT {COLUMNS} FROM journal WHERE claim = ? AND claim <> '' ORDER BY seq"
            return [Row(*row) for scope in dict.fromkeys(scopes) for row in db.execute(sql, (scope,))]
        case RowsAfter(seq):
            return [
                Row(*row)
                for row in db.execute(f"SELECT {COLUMNS} FROM journal WHERE seq > ? ORDER BY seq", (seq,))
            ]
        case RowsOf(refs):
            sql = f"SELECT {COLUMNS} FROM journal WHERE ref = ? AND ref <> '' ORDER BY seq"
            return [Row(*row) for ref in dict.fromkeys(refs) for row in db.execute(sql, (ref,))]
        case RowAt(seq):
            row = db.execute(f"SELECT {COLUMNS} FROM journal WHERE seq = ?", (seq,)).fetchone()
            return Row(*row) if row else None
        case Recent(since, bodies):
            body = "body" if bodies else "''"
            sql = f"SELECT at, persona, tool, {body} FROM journal WHERE seq >= ? AND kind = 'started' ORDER BY seq"
            return db.execute(sql, (first_since(db, since + 1),)).fetchall()
        case Heavy(since):
            sql = "SELECT at, persona, body FROM journal WHERE seq >= ? AND (length(body) > ? OR instr(body, ?) > 0 OR instr(body, ?) > 0) ORDER BY seq"
            return db.execute(sql, (first_since(db, since + 1), FREE, CUT, KEPT)).fetchall()
        case Sweep(at):
            db.execute(schema.ATTACHED_DUE.format("?"), (at,))
            db.execute("DELETE FROM claims WHERE expires <= ?", (at,))
            return None
        case LoadTables(names):
            return load(db, names)
        case Write():
            raise TypeError("this is the transaction itself")


def first_since(db: sqlite3.Connection, at: int) -> int:
    """The number of the first event dated `at` or later, by halving: an index would cost every commit a page."""
    (first,) = db.execute("SELECT min(seq) FROM journal").fetchone()
    low, high = first or 1, read_head(db).seq + 1
    while low < high:
        middle = (low + high) // 2
        row = db.execute("SELECT at FROM journal WHERE seq = ?", (middle,)).fetchone()
        if row is not None and row[0] < at:
            low = middle + 1
        else:
            high = middle
    return low


def rows_of(db: sqlite3.Connection, wanted: Filter) -> list[Row]:
    if wanted.since:
        wanted = replace(wanted, after=max(wanted.after, first_since(db, wanted.since) - 1))
    if wanted.until:
        end = first_since(db, wanted.until)
        wanted = replace(wanted, before=min(wanted.before or end, end))
    sql, values = select_rows(wanted, "?")
    return [Row(*row) for row in db.execute(sql, values)]


def read_head(db: sqlite3.Connection) -> Head:
    row = db.execute(_HEAD).fetchone()
    return Head(*row) if row else Head(0, 0, 0, schema.EMPTY_HASH, "")


def data_version(db: sqlite3.Connection) -> int:
    """Another one whenever another connection has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])


def load(db: sqlite3.Connection, names: Sequence[str]) -> dict[str, dict[Any, tuple[Any, ...]]]:
    return {
        name: {row[0]: row for row in db.execute(f"SELECT {', '.join(schema.PROJECTIONS[name])} FROM {name}")}
        for name in names
    }


_UPSERT = {name: schema.upsert(name) for name in schema.PROJECTIONS}
_DROP = {name: schema.drop(name) for name in schema.PROJECTIONS}


def _project(db: sqlite3.Connection, changes: Mapping[tuple[str, Any], tuple[Any, ...] | None]) -> None:
    puts: dict[str, list[tuple[Any, ...]]] = {}
    drops: dict[str, list[tuple[Any]]] = {}
    for (table, key), row in changes.items():
        if row is None:
            drops.setdefault(table, []).append((key,))
        else:
            puts.setdefault(table, []).append(row)
    for table, rows in puts.items():
        db.executemany(_UPSERT[table], rows)
    for table, keys in drops.items():
        db.executemany(_DROP[table], keys)


T = TypeVar("T")


class SqliteSnapshot:
    """A read transaction of its own connection: WAL keeps it consistent however long it takes. Without a `pool` it is
    read at once, where no event loop waits."""

    def __init__(self, path: Path, busy_ms: int, pool: ThreadPoolExecutor | None) -> None:
        self._path, self._busy_ms = path, busy_ms
        self._pool = pool
        self._db: sqlite3.Connection | None = None

    async def open(self) -> None:
        self._db = await self._run(lambda: connect(self._path, self._busy_ms))
        await self._ask(lambda db: db.execute("BEGIN"))

    async def close(self) -> None:
        if self._db is not None:
            await self._run(self._db.close)

    async def head(self) -> Head:
        return await self._ask(read_head)

    async def scan(self, after: int = 0, batch: int = 5000) -> AsyncIterator[list[Row]]:
        sql = f"SELECT {COLUMNS} FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
        while True:
            rows = await self._ask(partial(_read_rows, sql=sql, values=(after, batch)))
            if not rows:
                return
            yield rows
            after = rows[-1].seq

    async def tables(self) -> Tables:
        return await self._ask(lambda db: load(db, tuple(schema.PROJECTIONS)))

    async def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        db = self._db
        assert db is not None
        try:
            return await self._run(lambda: query(db))
        except sqlite3.Error as error:
            raise from_sqlite(error, str(self._path)) from error

    async def _run(self, function: Callable[[], T]) -> T:
        if self._pool is None:
            return function()
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(self._pool, function)


_as_row: Callable[[Iterable[Any]], Row] = partial(tuple.__new__, Row)
"""`Row._make` without counting: the query names exactly the columns."""


def _read_rows(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> list[Row]:
    return list(map(_as_row, db.execute(sql, values)))
