"""Connections to PostgreSQL: how they are made, what they are set to, and bringing the schema up to date."""

from __future__ import annotations

from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from toolgate.core.errors import SetupError, Unavailable
from toolgate.storage import schema

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
