"""A consistent view of a SQLite ledger for long reading."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.storage import schema
from toolgate.storage.faults import from_sqlite
from toolgate.storage.port import Head, Row, Tables
from toolgate.storage.sqlite_schema import connect
from toolgate.storage.sqlite_sql import COLUMNS, load, read_head

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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
