"""Every database behind one face for the contract suite, with the hands of somebody who can write to it."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import asyncpg

from servers.postgres import Server
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Head, Row
from toolgate.storage.postgres import PostgresBackend
from toolgate.storage.schema import HEAD, JOURNAL, PROJECTIONS
from toolgate.storage.sqlite import SqliteBackend

TABLES = {"journal": JOURNAL, "head": HEAD, **PROJECTIONS}
NEWER = 99
Dump = dict[str, list[tuple[Any, ...]]]


class Database(ABC):
    """One database; `make` gives another backend on it, as another process would have."""

    @abstractmethod
    def make(self, *, server_clock: bool = True) -> Any: ...

    @abstractmethod
    async def rows(self, table: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    async def replace(self, table: str, key: Any, *rows: tuple[Any, ...]) -> None:
        """Take out the row with this key and put these in, past every trigger."""

    async def close(self) -> None:
        return None

    async def dump(self) -> Dump:
        return {table: await self.rows(table) for table in TABLES}

    async def restore(self, dump: Dump) -> None:
        for table, rows in dump.items():
            for row in await self.rows(table):
                await self.replace(table, row[0])
            await self.replace(table, None, *rows)


class SqlDatabase(Database):
    """A database that answers to SQL, whose triggers can be tried and got rid of."""

    mark: str
    free: tuple[str, ...]
    """What takes the triggers away."""

    @abstractmethod
    async def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    async def set_newer_schema(self) -> None: ...

    @abstractmethod
    async def refuse_writes(self) -> None:
        """Let every write fail as late as this database can."""

    @abstractmethod
    async def accept_writes(self) -> None: ...

    async def rows(self, table: str) -> list[tuple[Any, ...]]:
        return await self.run(f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY 1")

    async def replace(self, table: str, key: Any, *rows: tuple[Any, ...]) -> None:
        await self._free()
        columns = TABLES[table]
        if key is not None:
            await self.run(f"DELETE FROM {table} WHERE {columns[0]} = {self._marks(1)}", key)
        names = ", ".join(columns) if table != "head" else f"id, {', '.join(columns)}"
        for row in rows:
            values = row if table != "head" else (1, *row)
            await self.run(f"INSERT INTO {table} ({names}) VALUES ({self._marks(len(values))})", *values)

    async def _free(self) -> None:
        for statement in self.free:
            await self.run(statement)

    def _marks(self, count: int) -> str:
        return ", ".join("?" if self.mark == "?" else f"${n}" for n in range(1, count + 1))


class Memory(Database):
    def __init__(self) -> None:
        self.backend = MemoryBackend()

    def make(self, *, server_clock: bool = True) -> Any:
        return self.backend

    async def rows(self, table: str) -> list[tuple[Any, ...]]:
        if table == "journal":
            return [tuple(row) for row in self.backend.journal]
        if table == "head":
            return [tuple(self.backend._head[: len(HEAD)])]
        return sorted(self.backend._tables[table].values())

    async def replace(self, table: str, key: Any, *rows: tuple[Any, ...]) -> None:
        if table == "head":
            self.backend._head = Head(*rows[0]) if rows else Head(0, 0, 0, "0" * 64, "")
        elif table == "journal":
            kept = [row for row in self.backend.journal if row.seq != key]
            self.backend.journal[:] = sorted((*kept, *(Row(*row) for row in rows)), key=lambda row: row.seq)
        else:
            self.backend._tables[table].pop(key, None)
            self.backend._tables[table].update({row[0]: row for row in rows})


class Sqlite(SqlDatabase):
    mark = "?"
    free = ("DROP TRIGGER IF EXISTS journal_no_update", "DROP TRIGGER IF EXISTS journal_no_delete")

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, *, server_clock: bool = True) -> Any:
        return SqliteBackend(self.path)

    async def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(self.path, isolation_level=None, timeout=10)
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    async def set_newer_schema(self) -> None:
        await self.run(f"PRAGMA user_version = {NEWER}")

    async def refuse_writes(self) -> None:
        await self.run("CREATE TRIGGER no BEFORE UPDATE ON head BEGIN SELECT RAISE(ABORT, 'not today'); END")

    async def accept_writes(self) -> None:
        await self.run("DROP TRIGGER no")


class Postgres(SqlDatabase):
    mark = "$"
    free = ("ALTER TABLE journal DISABLE TRIGGER USER",)

    def __init__(self, server: Server) -> None:
        self.dsn = server.fresh_dsn()
        self._hand: Any = None

    def make(self, *, server_clock: bool = True) -> Any:
        return PostgresBackend(self.dsn, use_server_clock=server_clock)

    async def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._hand is None:
            self._hand = await asyncpg.connect(self.dsn, timeout=10, command_timeout=10)
        return [tuple(row) for row in await self._hand.fetch(sql, *values)]

    async def set_newer_schema(self) -> None:
        await self.run(f"UPDATE toolgate_schema SET version = {NEWER}")

    async def refuse_writes(self) -> None:
        """Deferred: it is the COMMIT that fails."""
        await self.run(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'not today'; END $$"
        )
        await self.run(
            "CREATE CONSTRAINT TRIGGER no AFTER UPDATE ON head DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION no()"
        )

    async def accept_writes(self) -> None:
        await self.run("DROP FUNCTION no() CASCADE")

    async def close(self) -> None:
        if self._hand is not None:
            await self._hand.close(timeout=10)
