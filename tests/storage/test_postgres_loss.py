"""Connections break, sessions are ended, locks are lost: nothing is written twice, and nothing is pretended."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.databases import Postgres
from contracts.ledgers import KEYS, Opener, approved, asked, note, soon, started, write
from servers.postgres import Server
from toolgate.core.errors import Unavailable
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.verify import verify
from toolgate.storage.port import Filter
from toolgate.storage.postgres import PostgresBackend

from .cutting import Wire, wire_to

END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolgate' AND datname = current_database()"


@pytest.fixture
async def database(postgres_server: Server) -> AsyncIterator[Postgres]:
    found = Postgres(postgres_server)
    yield found
    await found.close()


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    opener = Opener()
    yield opener
    await opener.close()


@pytest.fixture
async def wire(postgres_server: Server) -> AsyncIterator[tuple[Wire, Path]]:
    with tempfile.TemporaryDirectory(prefix="w") as here:  # short: the name of a socket may have 107 bytes
        async with wire_to(postgres_server.sockets, Path(here)) as found:
            yield found, Path(here)


async def until(true: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not true():
            await asyncio.sleep(0.01)

    await soon(wait())


async def test_ended_sessions_are_made_again(database: Postgres, opened: Opener) -> None:
    ledger = await opened(database)
    await write(ledger, note("before"))
    for _ in range(3):
        await database.run(END_ALL)
        await write(ledger, note("after"))
        await database.run(END_ALL)
        await soon(ledger.backend.rows(Filter()))
    assert (await verify(ledger.backend, KEYS)).events == 4


async def test_news_are_heard_again_after_the_listener_was_lost(database: Postgres, opened: Opener) -> None:
    here, there = await opened(database), await opened(database)
    await write(here, asked())

    async def until_approved() -> None:
        while await here.look(lambda state, now: state.questions["q_1"].state) != "approved":
            await here.backend.changed(30)

    waiting = asyncio.create_task(until_approved())
    await database.run(END_ALL)
    await asyncio.sleep(0.1)
    await write(there, approved())
    await asyncio.wait_for(waiting, 30)


@pytest.mark.parametrize("alone", [False, True], ids=["locked", "alone"])
@pytest.mark.parametrize("deliver", [True, False], ids=["answer-lost", "request-lost"])
async def test_a_connection_cut_while_committing_writes_exactly_once(
    deliver: bool, alone: bool, database: Postgres, wire: tuple[Wire, Path]
) -> None:
    cutter, here = wire
    ledger = Ledger(PostgresBackend(f"{database.dsn.partition('?')[0]}?host={here}"), KEYS)
    await soon(ledger.open())
    try:
        for n in range(20 if alone else 2):
            await write(ledger, started(f"c_{n}"))
        seq = (await ledger.backend.head()).seq
        told: list[Any] = []
        ledger.committed.append(told.append)
        cutter.arm(b"c_cut" if alone else b"COMMIT", deliver=deliver)
        [row] = await write(ledger, started("c_cut"))
        assert cutter.cuts == 1, "the test must have cut something"
        assert row.seq == seq + 1
        assert [rows[0].call for rows in told] == ["c_cut"]
        assert [r.call for r in await ledger.backend.rows(Filter(call="c_cut"))] == ["c_cut"]
        await write(ledger, note("goes on"))
        assert (await verify(ledger.backend, KEYS)).ok
    finally:
        await soon(ledger.close())


@pytest.mark.parametrize("alone", [False, True], ids=["locked", "alone"])
@pytest.mark.parametrize("deliver", [True, False], ids=["answer-lost", "request-lost"])
async def test_what_nobody_can_tell_is_not_tried_again(
    deliver: bool, alone: bool, database: Postgres, wire: tuple[Wire, Path]
) -> None:
    cutter, here = wire
    ledger = Ledger(PostgresBackend(f"{database.dsn.partition('?')[0]}?host={here}"), KEYS)
    await soon(ledger.open())
    try:
        for n in range(20 if alone else 2):
            await write(ledger, started(f"c_{n}"))
        cutter.arm(b"c_cut" if alone else b"COMMIT", deliver=deliver, tear=True)
        with pytest.raises(Unavailable) as caught:
            await write(ledger, started("c_cut"))
        assert caught.value.fix
        cutter.torn = False
        await write(ledger, note("goes on"))
        assert len(await ledger.backend.rows(Filter(call="c_cut"))) == (1 if deliver else 0)
        assert (await verify(ledger.backend, KEYS)).ok
    finally:
        await soon(ledger.close())


async def test_an_owner_whose_session_was_lost_takes_its_lock_again(
    database: Postgres, opened: Opener
) -> None:
    backend = database.make()
    owners, other = backend.owners(), database.make().owners()
    ledger = Ledger(backend, KEYS)
    await soon(owners.enter())
    await soon(other.enter())
    await soon(ledger.open())
    try:
        await database.run(END_ALL)
        await until(lambda: owners.lost)
        await write(ledger, note("alive again"))
        assert not owners.lost
        assert not await soon(other.dead(owners.me))
    finally:
        await soon(ledger.close())
        await soon(owners.leave())
        await soon(other.leave())


async def test_nothing_is_written_while_the_owner_cannot_prove_that_it_lives(
    database: Postgres, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.storage import postgres_connect

    monkeypatch.setattr(postgres_connect, "ATTEMPTS", 3)
    backend = database.make()
    owners = backend.owners()
    ledger = Ledger(backend, KEYS)
    await soon(owners.enter())
    await soon(ledger.open())
    try:
        await database.run(END_ALL)
        await until(lambda: owners.lost)
        key = postgres_connect._number(owners.me)
        assert await database.run("SELECT pg_try_advisory_lock($1)", key) == [(True,)]
        with pytest.raises(Unavailable, match="owner lock") as caught:
            await write(ledger, note("as if alive"))
        assert caught.value.fix
        assert (await ledger.backend.head()).seq == 0
        await database.run("SELECT pg_advisory_unlock($1)", key)
        [row] = await write(ledger, note("alive"))
        assert row.seq == 1
    finally:
        await soon(ledger.close())
        await soon(owners.leave())


async def test_a_stopped_writer_does_not_hold_the_others_for_ever(database: Postgres, opened: Opener) -> None:
    """Its session is ended by the server; here by a shorter patience of those who wait."""
    ledger = await opened(database)
    await database.run("BEGIN")
    await database.run("SELECT * FROM head FOR UPDATE")
    try:
        connection = await ledger.backend._writer.connection()  # type: ignore[attr-defined]
        await connection.execute("SET lock_timeout = '200ms'")
        with pytest.raises(Unavailable, match="locked by another process") as caught:
            await write(ledger, note("waiting"))
        assert "pg_stat_activity" in caught.value.fix
    finally:
        await database.run("ROLLBACK")
    await write(ledger, note("free again"))


async def test_closing_decides_what_is_waiting(database: Postgres, opened: Opener) -> None:
    ledger = await opened(database)
    tasks = [asyncio.create_task(write(ledger, note(str(n)))) for n in range(40)]
    await asyncio.sleep(0)
    await opened.close()
    results = await soon(asyncio.gather(*tasks, return_exceptions=True))
    written = [result for result in results if not isinstance(result, BaseException)]
    assert all(isinstance(result, Unavailable) for result in results if isinstance(result, BaseException))
    assert (await verify(database.make(), KEYS)).events == len(written)


async def test_whoever_is_alone_needs_no_lock_and_one_round_trip(
    database: Postgres, wire: tuple[Wire, Path]
) -> None:
    cutter, here = wire
    ledger = Ledger(PostgresBackend(f"{database.dsn.partition('?')[0]}?host={here}"), KEYS)
    await soon(ledger.open())
    try:
        for _ in range(20):
            await write(ledger, note("getting calm"))
        cutter.arm(b"BEGIN", deliver=False)
        for _ in range(5):
            await write(ledger, note("alone"))
        assert cutter.cuts == 0, "no transaction was opened"
        await database.run("UPDATE head SET mac = mac")  # touched, but where it was
        await write(ledger, note("still alone"))
        assert cutter.cuts == 0
        other = Ledger(database.make(), KEYS)
        await soon(other.open())
        await write(other, note("not alone"))
        await soon(other.close())
        await write(ledger, note("with the lock"))
        assert cutter.cuts == 1
        assert (await verify(ledger.backend, KEYS)).events == 28
    finally:
        await soon(ledger.close())
