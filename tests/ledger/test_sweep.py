"""Claims end after 48 hours, and the table does not keep them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import toolgate
from toolgate.ledger.keys import Keys
from toolgate.storage.port import Backend
from toolgate.storage.postgres import PostgresBackend
from toolgate.storage.sqlite import SqliteBackend
from toolgate.testing import FixedClock

CONFIG = {"version": 1, "default_persona": "p", "personas": {"p": {"phase": "observe"}}}
DAY = 24 * 3600


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Backend]:
    if request.param == "sqlite":
        return lambda: SqliteBackend(tmp_path / "ledger.db")
    dsn = request.getfixturevalue("fresh_dsn")
    return lambda: PostgresBackend(dsn, use_server_clock=False)


async def claims(gate: toolgate.Gate) -> set[str]:
    async with gate.services.ledger.backend.snapshot() as snapshot:
        return set((await snapshot.tables())["claims"])


async def test_a_claim_that_has_ended_is_swept_when_the_ledger_is_opened(
    database: Backend, tmp_path: Path
) -> None:
    clock, keys = FixedClock(), Keys.new()

    async def opened(key: str) -> set[str]:
        async with toolgate.open(tmp_path, CONFIG, database(), clock=clock, keys=keys) as gate:
            assert (await gate.call("system.ping", key=key)).ok
            assert (await gate.verify()).ok
            return await claims(gate)

    assert await opened("first") == {"key/p/first"}
    clock.advance(1.5 * DAY)
    assert await opened("second") == {"key/p/first", "key/p/second"}
    clock.advance(1 * DAY)
    # swept by what the journal knew when it was opened: its last event is a day and a half after the first
    await opened("third")
    assert await opened("fourth") == {"key/p/second", "key/p/third", "key/p/fourth"}
