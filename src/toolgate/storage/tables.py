"""Tables of a feature, with a version row and migrations of their own, on SQLite and PostgreSQL.

On SQLite they are in a file beside the ledger's, so that a feature that writes much never makes the journal wait; on
PostgreSQL in the ledger's database. Statements are written with `?` for their values in both.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from toolgate.core.errors import Unavailable
from toolgate.storage.sqlite_file import immediate, statements_of

T = TypeVar("T")
BUSY_S = 10.0
_RELAX = "SET synchronous_commit = off"
VERSIONS = "feature_versions"
_MAKE = f"CREATE TABLE IF NOT EXISTS {VERSIONS} (feature TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_READ = f"SELECT version FROM {VERSIONS} WHERE feature = ?"
_KEEP = f"""INSERT INTO {VERSIONS} (feature, version) VALUES (?, ?)
    ON CONFLICT (feature) DO UPDATE SET version = excluded.version"""


class Migration(NamedTuple):
    """One step forward, as scripts of several statements. A feature's version is how many it has taken."""

    sqlite: str
    postgres: str


class Statement(NamedTuple):
    """One of several that run together."""

    sql: str
    values: Sequence[Any] = ()


class Tables(Protocol):
    """What a feature reads and writes its tables with. Each statement is a transaction of its own, but for those
    that are given to `transaction`."""

    async def fetch(self, sql: str, *values: Any) -> list[dict[str, Any]]: ...

    async def execute(self, sql: str, *values: Any) -> int:
        """How many rows it touched."""
        ...

    async def transaction(self, statements: Sequence[Statement]) -> list[list[dict[str, Any]]]:
        """All of them or none, in their order; the rows that each one gave."""
        ...

    async def migrate(self, feature: str, steps: Sequence[Migration]) -> None:
        """Forward only, all steps or none. Tables of a newer version are refused untouched."""
        ...

    async def relax(self) -> None:
        """From now on a commit survives kill -9 but not a power cut: for a feature that can make its rows again."""
        ...

    async def close(self) -> None: ...


def _steps_left(feature: str, have: int, steps: Sequence[Migration]) -> Sequence[Migration]:
    if have > len(steps):
        raise Unavailable(
            f"the tables of {feature} have version {have}, this one knows {len(steps)}", f"upgrade {feature}"
        )
    return steps[have:]


class SqliteTables:
    def __init__(self, path: Path | None) -> None:
        """Without a path, in memory."""
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolgate-tables")
        self._db: sqlite3.Connection | None = None
        self._files: list[tuple[int, int]] = []

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            if self._path is not None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path or ":memory:", timeout=BUSY_S, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            for pragma in (
                "journal_mode = WAL",
                "synchronous = FULL",
                "trusted_schema = OFF",
                "foreign_keys = ON",
            ):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.execute("SELECT 1 FROM sqlite_master").fetchall()  # now its log is there, too
            self._files = self._there()
        elif self._there() != self._files:
            raise Unavailable(
                f"{self._path} was taken away while it was open, and nobody would read what is written now",
                "stop what uses it, put the file that was there back (or restore a backup), then open the gate again",
            )
        return self._db

    def _there(self) -> list[tuple[int, int]]:
        """Which files stand at the path: SQLite goes on writing into one that was removed or renamed."""
        if self._path is None:
            return []
        try:
            found = [os.stat(f"{self._path}{end}") for end in ("", "-wal", "-shm")]
        except FileNotFoundError:
            return []
        return [(one.st_dev, one.st_ino) for one in found]

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                return work(self._connection())
            except sqlite3.OperationalError as error:
                raise Unavailable(
                    f"{self._path or 'tables in memory'}: {error}", "see `toolgate doctor`"
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def fetch(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return await self._run(lambda db: [dict(row) for row in db.execute(sql, values).fetchall()])

    async def execute(self, sql: str, *values: Any) -> int:
        return await self._run(lambda db: db.execute(sql, values).rowcount)

    async def transaction(self, statements: Sequence[Statement]) -> list[list[dict[str, Any]]]:
        return await self._run(lambda db: _together(db, statements))

    async def migrate(self, feature: str, steps: Sequence[Migration]) -> None:
        await self._run(lambda db: _migrate_sqlite(db, feature, steps))

    async def relax(self) -> None:
        await self._run(lambda db: db.execute("PRAGMA synchronous = NORMAL"))

    async def close(self) -> None:
        if self._db is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()


def _together(db: sqlite3.Connection, statements: Sequence[Statement]) -> list[list[dict[str, Any]]]:
    with immediate(db):
        return [[dict(row) for row in db.execute(each.sql, each.values)] for each in statements]


def _migrate_sqlite(db: sqlite3.Connection, feature: str, steps: Sequence[Migration]) -> None:
    with immediate(db):  # whoever comes second waits, and finds it done
        db.execute(_MAKE)
        row = db.execute(_READ, (feature,)).fetchone()
        for step in _steps_left(feature, row[0] if row else 0, steps):
            for statement in statements_of(step.sqlite):
                db.execute(statement)
        db.execute(_KEEP, (feature, len(steps)))


class PostgresTables:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._db: Any = None
        self._turn = asyncio.Lock()
        self._relaxed = False

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        from toolgate.storage.postgres_connect import ERRORS, connect

        async with self._turn:
            try:
                if self._db is None or self._db.is_closed():
                    self._db = await connect(self._dsn)
                    if self._relaxed:
                        await self._db.execute(_RELAX)
                return await work(self._db)
            except ERRORS as error:
                raise Unavailable(f"the tables cannot be used: {error}", "see `toolgate doctor`") from error

    async def fetch(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        rows = await self._run(lambda db: db.fetch(_numbered(sql), *values))
        return [dict(row) for row in rows]

    async def execute(self, sql: str, *values: Any) -> int:
        said = await self._run(lambda db: db.execute(_numbered(sql), *values))
        last = str(said).rpartition(" ")[2]
        return int(last) if last.isdigit() else 0

    async def transaction(self, statements: Sequence[Statement]) -> list[list[dict[str, Any]]]:
        async def work(db: Any) -> list[list[dict[str, Any]]]:
            async with db.transaction():
                found = [await db.fetch(_numbered(each.sql), *each.values) for each in statements]
            return [[dict(row) for row in rows] for rows in found]

        done: list[list[dict[str, Any]]] = await self._run(work)
        return done

    async def migrate(self, feature: str, steps: Sequence[Migration]) -> None:
        from toolgate.storage.postgres_connect import MIGRATING

        async def work(db: Any) -> None:
            async with db.transaction():
                await db.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
                await db.execute(_MAKE)
                have = await db.fetchval(_numbered(_READ), feature)
                for step in _steps_left(feature, have or 0, steps):
                    await db.execute(step.postgres)
                await db.execute(_numbered(_KEEP), feature, len(steps))

        await self._run(work)

    async def relax(self) -> None:
        self._relaxed = True
        await self._run(lambda db: db.execute(_RELAX))

    async def close(self) -> None:
        if self._db is not None:
            from toolgate.storage.postgres_connect import close

            await close(self._db)


def _numbered(sql: str) -> str:
    """`?` as PostgreSQL writes it. Texts in a statement are values, so there is no other question mark."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
