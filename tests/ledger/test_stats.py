"""Statistics from kept sums are those that a count of every row gives, whenever they were kept."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.databases import Database, Memory, Postgres, Sqlite
from gates import KEYS, NOON, FixedClock
from toolgate.core.clock import SECOND
from toolgate.core.event import Committed, Denied, Event, Failed, Flood, Noted, Rejected, Unknown
from toolgate.ledger import stats
from toolgate.ledger.ledger import Ledger, Work
from toolgate.storage import schema
from toolgate.storage.port import Filter, Sum


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    made: Database = (
        Memory()
        if request.param == "memory"
        else Sqlite(tmp_path / "ledger.db")
        if request.param == "sqlite"
        else Postgres(request.getfixturevalue("postgres_server"))
    )
    yield made
    await made.close()


def any_event(chance: random.Random, number: int) -> Event:
    of: dict[str, Any] = {
        "call": f"c_{number}",
        "persona": chance.choice(["ada", "bob", ""]),
        "tool": chance.choice(["t.a", "t.b"]),
    }
    return chance.choice(
        [
            Committed(**of, duration_us=chance.randrange(9000), tokens=chance.randrange(50)),
            Failed(**of, code=chance.choice(["failed", "conflict"]), error="x", duration_us=7),
            Unknown(**of, code="unknown_outcome", error="x"),
            Denied(**of, rule="r", reason="x"),
            Rejected(**of, code="invalid_args", error="x"),
            Flood(persona=of["persona"], count=3, since=1, until=2),
            Noted(persona=of["persona"], type="t", rationale="x"),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
async def test_kept_sums_and_a_count_of_every_row_agree(
    database: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    small = 8
    monkeypatch.setattr(stats, "BLOCK", small)
    monkeypatch.setattr(schema, "SUMS", schema.SUMS.replace(f"* {schema.BLOCK}", f"* {small}"))
    clock = FixedClock()
    ledger = Ledger(database.make(server_clock=False), KEYS, clock)
    await ledger.open()
    try:
        for number in range(60):
            events = [any_event(chance, number) for _ in range(chance.randrange(1, 4))]
            await ledger.do(Work(lambda view, events=events: view.events.extend(events), durable=False))
            clock.advance(chance.choice([0, 1, 60]))
            if chance.random() < 0.2:
                since = chance.choice([0, chance.randrange(NOON, clock.micros + SECOND)])
                head = (await ledger.backend.head()).seq
                first = await _first(ledger, since)
                assert await stats.tallies(ledger.backend, since) == await stats._counted(
                    ledger.backend, first, head
                )
        assert await ledger.backend.sums(0, 100), "sums are kept"
    finally:
        await ledger.close()


async def _first(ledger: Ledger, since: int) -> int:
    return next((row.seq for row in await ledger.backend.rows(Filter()) if row.at >= since), 10**9)


async def test_rows_that_are_summed_up_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(Sqlite(tmp_path / "ledger.db").make(), KEYS)
    await ledger.open()
    try:
        done = [Committed(call=f"c_{n}", persona="ada", tool="t.a", duration_us=5) for n in range(10_000)]
        await ledger.do(Work(lambda view: view.events.extend(done), durable=False))
        first = await stats.tallies(ledger.backend, 0)
        read: list[int] = []
        rows = ledger.backend.rows

        async def counted(wanted: Any) -> Any:
            found = await rows(wanted)
            read.append(len(found))
            return found

        monkeypatch.setattr(ledger.backend, "rows", counted)
        assert await stats.tallies(ledger.backend, 0) == first
        assert sum(read) < 2 * schema.BLOCK
        assert first["ada"]["t.a"].calls == 10_000
    finally:
        await ledger.close()


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
async def test_sums_of_another_journal_do_not_count(database: Database) -> None:
    ledger = Ledger(database.make(), KEYS)
    await ledger.open()
    try:
        done = [Committed(call=f"c_{n}", persona="ada", tool="t.a") for n in range(schema.BLOCK)]
        await ledger.do(Work(lambda view: view.events.extend(done), durable=False))
        await ledger.backend.keep_sums([Sum(0, "0" * 64, '[["eve", "t.a", 9, 9, 0, 0, 0, {}]]')])
        assert list(await stats.tallies(ledger.backend, 0)) == ["ada"]
    finally:
        await ledger.close()
