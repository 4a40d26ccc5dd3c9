"""The peer on PostgreSQL: batches of 64 rows, each batch one durable commit."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.raw import BODY

GROUP = 64
WAYS = {
    "unnest": "INSERT INTO raw_log (at, body, prev, hash) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])",
    "executemany": "INSERT INTO raw_log (at, body, prev, hash) VALUES ($1, $2, $3, $4)",
}
_ROWS = [(n, BODY, "0" * 64, "f" * 64) for n in range(GROUP)]
_COLUMNS = [list(column) for column in zip(*_ROWS, strict=True)]


@asynccontextmanager
async def raw_table(dsn: str) -> AsyncIterator[Any]:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "CREATE TABLE raw_log (seq bigserial PRIMARY KEY, at bigint, body text, prev text, hash text)"
        )
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
