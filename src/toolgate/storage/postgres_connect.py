"""Connections to PostgreSQL: how they are made, what they are set to, and bringing the schema up to date.

One of them says which process owns a running call: it has a session lock, which the server releases however we end. If
that session is lost, others may take us for dead; so nothing more is written until the lock is ours again.
"""

from __future__ import annotations

import asyncio
import hashlib
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from toolgate.core.call import new_id
from toolgate.core.errors import SetupError, Unavailable
from toolgate.storage import schema
from toolgate.storage.faults import from_postgres, is_lost

try:
    import asyncpg
except ImportError:
    raise SetupError(
        "PostgreSQL needs the package asyncpg, which is not installed", "pip install 'toolgate[postgres]'"
    ) from None

Connection = asyncpg.Connection
ERRORS: tuple[type[Exception], ...] = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
"""Everything the driver raises; time-outs are OSErrors."""

CONNECT_S = 10.0
COMMAND_S = 60.0
SETTINGS = {
    "application_name": "toolgate",
    "lock_timeout": "10000",
    # whoever is stopped while it holds the head lock loses it, and the others go on
    "idle_in_transaction_session_timeout": "10000",
    "jit": "off",  # compiling costs more than any of our statements
    "plan_cache_mode": "force_generic_plan",
}
MIGRATING = 0x746F6F6C67617465
"""The advisory lock under which one process at a time changes the schema: `toolgate` in ASCII."""


def place_of(dsn: str) -> str:
    """What a message may say about a database: never the password."""
    try:
        parts = urlsplit(dsn)
        if "@" in parts.path + parts.query + parts.fragment:
            return "PostgreSQL database"  # a `/`, `?` or `#` in the password has put a piece of it there
        host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        return f"database {parts.path.lstrip('/') or 'of that user'} at {host}"
    except ValueError:
        return "PostgreSQL database"


async def connect(dsn: str, **settings: str) -> Any:
    try:
        return await asyncpg.connect(
            dsn, timeout=CONNECT_S, command_timeout=COMMAND_S, server_settings=SETTINGS | settings
        )
    except ValueError:  # whose text may hold a piece of the password
        raise SetupError(
            "the address of the database cannot be read",
            "write postgresql://user:password@host:5432/name; in a password, `/` is %2F, `?` %3F, `#` %23, `@` %40",
        ) from None


async def close(connection: Any) -> None:
    """Say goodbye if somebody listens; be gone in any case."""
    try:
        await connection.close(timeout=5)
    except ERRORS:
        connection.terminate()


async def migrate(connection: Any, place: str) -> None:
    """Numbered files, forward only; a ledger of a newer version is refused untouched."""
    if await _version(connection) == schema.VERSION:
        return
    # taken before the transaction begins, which therefore sees what the holder before us has made
    await connection.execute("SELECT pg_advisory_lock($1)", MIGRATING)
    try:
        async with connection.transaction():
            await _migrate(connection, place)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", MIGRATING)


async def _migrate(connection: Any, place: str) -> None:
    have = await _version(connection)
    if have > schema.VERSION:
        raise Unavailable(
            f"this ledger has schema {have}, this toolgate knows {schema.VERSION}", "upgrade toolgate"
        )
    await _check_encoding(connection, place)
    for number, script in _scripts():
        if number > have:
            await connection.execute(script)
    await connection.execute("CREATE TABLE IF NOT EXISTS toolgate_schema (version INTEGER NOT NULL)")
    await connection.execute("DELETE FROM toolgate_schema")
    await connection.execute("INSERT INTO toolgate_schema VALUES ($1)", schema.VERSION)


async def _version(connection: Any) -> int:
    if await connection.fetchval("SELECT to_regclass('toolgate_schema')") is None:
        return 0
    return int(await connection.fetchval("SELECT coalesce(max(version), 0) FROM toolgate_schema"))


async def _check_encoding(connection: Any, place: str) -> None:
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise SetupError(f"the {place} stores {encoding}", "create the database with ENCODING 'UTF8'")


def _scripts() -> list[tuple[int, str]]:
    found = []
    for file in resources.files("toolgate.storage").joinpath("sql").iterdir():
        dialect, number, *_ = file.name.split("_")
        if dialect == "postgres":
            found.append((int(number), file.read_text()))
    return sorted(found)


ATTEMPTS = 40
PAUSE = 0.05


class PostgresOwners:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._place = place_of(dsn)
        self.me = new_id("o")
        self._session: Any = None
        self._busy = asyncio.Lock()
        self._entered = False

    async def enter(self) -> None:
        self._entered = True
        await self.hold()

    async def leave(self) -> None:
        self._entered = False
        async with self._busy:
            session, self._session = self._session, None
            if session is not None:
                await close(session)

    @property
    def lost(self) -> bool:
        """Entered, and the session that proves it is gone."""
        return self._entered and (self._session is None or self._session.is_closed())

    async def hold(self) -> None:
        """Take the lock, again if need be; raise Unavailable while that is not possible."""
        async with self._busy:
            if not self.lost:
                return
            session = None
            try:
                session = await connect(self._dsn)
                await self._lock(session)
            except BaseException as error:
                if session is not None:
                    session.terminate()
                if isinstance(error, ERRORS):
                    raise from_postgres(error, self._place) from error
                raise
            self._session = session

    async def _lock(self, session: Any) -> None:
        for _ in range(
            ATTEMPTS
        ):  # somebody may just be looking whether we live, or our old session is ending
            if await session.fetchval("SELECT pg_try_advisory_lock($1)", _number(self.me)):
                return
            await asyncio.sleep(PAUSE)
        raise Unavailable(
            f"another session holds the owner lock of this process ({self.me})",
            "try again; the old session ends when the server notices that it is gone",
        )

    async def dead(self, owner: str) -> bool:
        """Whether nobody holds its lock. Shared and for one statement only, so that two may look at once."""
        if owner == self.me:
            return False
        await self.hold()
        async with self._busy:
            if self._session is None:
                raise Unavailable("the owner's session is closed", "open the gate again")
            try:
                sql = "SELECT pg_try_advisory_xact_lock_shared($1)"
                return bool(await self._session.fetchval(sql, _number(owner)))
            except ERRORS as error:
                if is_lost(error):
                    self._session.terminate()
                raise from_postgres(error, self._place) from error


def _number(owner: str) -> int:
    return int.from_bytes(hashlib.sha256(f"toolgate owner {owner}".encode()).digest()[:8], signed=True)
