"""Several processes open one new file at the same moment; SQLite alone would turn some of them away."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from contracts.ledgers import KEYS, note, soon, write
from toolgate.core.errors import Unavailable
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.verify import verify
from toolgate.storage.sqlite import SqliteBackend

ROUNDS = 40
"""One round in sixteen turned somebody away before."""


async def test_of_many_that_open_a_new_file_at_once_nobody_is_turned_away(tmp_path: Path) -> None:
    for turn in range(ROUNDS):
        path = tmp_path / str(turn) / "ledger.db"
        ledgers = [Ledger(SqliteBackend(path), KEYS) for _ in range(4)]
        try:
            await soon(asyncio.gather(*(ledger.open() for ledger in ledgers)))
            await asyncio.gather(*(write(ledger, note("here")) for ledger in ledgers))
            assert (await verify(ledgers[0].backend, KEYS)).events == len(ledgers)
        finally:
            for ledger in ledgers:
                await ledger.close()


async def test_whoever_opens_a_file_that_is_in_use_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.3, other.execute, ["COMMIT"]).start()
        ledger = Ledger(SqliteBackend(path), KEYS)
        await soon(ledger.open())
        try:
            await write(ledger, note("after"))
        finally:
            await ledger.close()


async def test_a_file_that_stays_in_use_is_an_error_after_the_time_given(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="locked by another process"):
            await soon(Ledger(SqliteBackend(path, busy_ms=50), KEYS).open())
