"""The peer on PostgreSQL: batches of 64 rows, each batch one durable commit."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.raw import BODY
from toolgate.storage import schema

GROUP = 64
_NAMES = ", ".join(schema.JOURNAL[1:])
_TYPES = ["bigint" if name in schema.NUMBERS else "text" for name in schema.JOURNAL[1:]]
_ARRAYS = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(_TYPES, 1))
_MARKS = ", ".join(f"${n}" for n in range(1, len(_TYPES) + 1))
WAYS = {
    "unnest": f"INSERT INTO raw_log ({_NAMES}) SELECT * FROM unnest({_ARRAYS})",
    "executemany": f"INSERT INTO raw_log ({_NAMES}) VALUES ({_MARKS})",
}
_CALL = "c_1a1e1694e762f8ff9a0c1{:07x}"
_ROWS = [
    (n, "started", _CALL.format(n), "bench", "bench.send", "", "", "", 1, BODY, "0" * 64, "f" * 64, "e" * 64)
    for n in range(GROUP)
]
_COLUMNS = [list(column) for column in zip(*_ROWS, strict=True)]
"""Rows of the journal's shape and size, into a table with its columns and indexes."""


@asynccontextmanager
async def raw_table(dsn: str) -> AsyncIterator[Any]:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    try:
        columns = ", ".join(
            f"{name} {kind} NOT NULL" for name, kind in zip(schema.JOURNAL[1:], _TYPES, strict=True)
        )
        await connection.execute(f"CREATE TABLE raw_log (seq bigserial PRIMARY KEY, {columns})")
        for name in ("call", "ref"):
            await connection.execute(f"CREATE INDEX ON raw_log ({name}) WHERE {name} <> ''")
        await connection.execute("CREATE INDEX ON raw_log (at)")
        yield connection
    finally:
        await connection.close()


async def faster_way(connection: Any, seconds: float) -> str:
    """The stronger peer: whichever of the two is faster here."""
    rates = {way: await rate(connection, way, seconds) for way in WAYS}
    return max(rates, key=rates.__getitem__)


async def rate(connection: Any, way: str, seconds: float) -> float:
    """Rows per second; both ways are one transaction per batch."""
    done, begun = 0, time.perf_counter()
    end = begun + seconds
    while time.perf_counter() < end:
        if way == "unnest":
            await connection.execute(WAYS[way], *_COLUMNS)
        else:
            await connection.executemany(WAYS[way], _ROWS)
        done += GROUP
    return done / (time.perf_counter() - begun)
