"""While nobody else writes, the ledger decides on the head it left itself; the write finds out if that was wrong."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from contracts.databases import Sqlite
from contracts.ledgers import KEYS, note, raising, soon, started, write
from toolgate.core.errors import LedgerBroken, Unavailable
from toolgate.core.event import Committed, Paused, Resumed
from toolgate.core.ports import Window
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.ledger.state import State
from toolgate.ledger.verify import verify
from toolgate.storage.sqlite import SqliteBackend
from toolgate.storage.sqlite_file import connect
from toolgate.storage.sqlite_sql import CALM, SqliteWriter


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Ledger, Ledger]]:
    """One that has been alone for long, and another process on the same file that now begins."""
    async with AsyncExitStack() as stack:
        ledgers = [Ledger(SqliteBackend(tmp_path / "ledger.db"), KEYS) for _ in range(2)]
        for ledger in ledgers:
            await soon(ledger.open())
            stack.push_async_callback(ledger.close)
        await calm(ledgers[0])
        yield ledgers[0], ledgers[1]


async def calm(ledger: Ledger) -> None:
    while not writer_of(ledger)._guessed:
        await write(ledger, note("alone"))


def writer_of(ledger: Ledger) -> SqliteWriter:
    assert isinstance(ledger.backend, SqliteBackend)
    assert ledger.backend._here is not None
    return ledger.backend._here


async def sound(ledger: Ledger) -> bool:
    return (await verify(ledger.backend, KEYS)).ok


async def test_what_another_process_wrote_meanwhile_comes_before_what_is_written_now(
    pair: tuple[Ledger, Ledger],
) -> None:
    ours, theirs = pair
    for turn in range(5):
        (their_row,) = await write(theirs, note(f"theirs {turn}"))
        (our_row,) = await write(ours, note(f"ours {turn}"))
        assert (our_row.seq, our_row.prev) == (their_row.seq + 1, their_row.hash)
        await calm(ours)
    assert await sound(ours)


async def test_after_each_wrong_guess_it_is_asked_for_twice_as_long(pair: tuple[Ledger, Ledger]) -> None:
    ours, theirs = pair
    for times in (2, 4, 8):
        await calm(ours)
        await write(theirs, note("theirs"))
        await write(ours, note("ours"))
        assert writer_of(ours)._patience == times * CALM


async def test_who_only_looks_sees_what_another_process_wrote(pair: tuple[Ledger, Ledger]) -> None:
    ours, theirs = pair
    await write(theirs, Paused(persona="ada", by="eve", reason="stop"))
    assert await ours.look(lambda state, now: dict(state.paused)) == {"ada": "stop"}
    await calm(ours)
    await write(theirs, Resumed(persona="ada", by="eve"))
    assert await ours.look(lambda state, now: dict(state.paused)) == {}


async def test_nothing_is_refused_on_a_guess(pair: tuple[Ledger, Ledger]) -> None:
    ours, theirs = pair
    await write(theirs, Paused(persona="ada", by="eve", reason="stop"))

    def decide(view: View) -> str:
        if "ada" not in view.state.paused:
            raise RuntimeError("decided on what was true before")
        view.emit(note("decided on what is true"))
        return "yes"

    assert await soon(ours.do(Work(decide))) == "yes"
    assert await sound(ours)


async def test_an_error_of_its_own_is_raised_once_and_writes_nothing(pair: tuple[Ledger, Ledger]) -> None:
    ours, _ = pair
    before = (await ours.backend.head()).seq
    with pytest.raises(ZeroDivisionError):
        await soon(ours.do(raising(ZeroDivisionError())))
    assert (await ours.backend.head()).seq == before
    await write(ours, note("goes on"))
    assert await sound(ours)


async def test_a_commit_that_may_have_happened_is_not_made_again(pair: tuple[Ledger, Ledger]) -> None:
    ours, _ = pair
    writer = writer_of(ours)
    run, before = writer._run, (await ours.backend.head()).seq
    tried: list[str] = []

    def breaking(sql: str, *values: Any) -> Any:
        done = run(sql, *values)
        if sql == "COMMIT":
            tried.append(sql)
            raise sqlite3.OperationalError("disk I/O error")
        return done

    writer._run = breaking  # type: ignore[assignment]
    with pytest.raises(Unavailable):
        await write(ours, note("once"))
    writer._run = run
    assert tried == ["COMMIT"]
    assert (await ours.backend.head()).seq == before + 1
    await write(ours, note("after"))
    assert await sound(ours)


async def test_a_database_that_stays_locked_is_said_and_the_ledger_goes_on_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(SqliteBackend(path, busy_ms=1), KEYS)
    await ledger.open()
    ledger.callers = 2  # not alone: the thread writes
    for number in range(2 * CALM):
        await write(ledger, note(f"{number}"))
    await ledger.look(lambda state, now: None)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match=r"busy|locked|writing"):
        await write(ledger, note("in vain"))
    other.execute("ROLLBACK")
    other.close()
    await write(ledger, note("after"))
    assert await sound(ledger)
    await ledger.close()


async def test_who_guessed_wrongly_waits_for_whoever_writes_now(
    pair: tuple[Ledger, Ledger], tmp_path: Path
) -> None:
    ours, theirs = pair
    await write(theirs, note("theirs"))
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, check_same_thread=False)
    writer, taken = writer_of(ours), threading.Event()
    mistaken = writer.mistaken

    def then_another_begins() -> bool:
        if not taken.is_set():
            taken.set()
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.05, other.execute, ("ROLLBACK",)).start()
        return mistaken()

    writer.mistaken = then_another_begins  # type: ignore[method-assign]
    assert len(await write(ours, note("after"))) == 1
    assert taken.is_set()
    assert await sound(ours)
    other.close()


async def test_calls_of_others_are_counted_once_after_a_policy_was_read_again(tmp_path: Path) -> None:
    def windows(persona: str, tool: str, writes: tuple[str, ...]) -> tuple[Window, ...]:
        return (Window(f"persona/{persona}", persona, 10, 60.0),)

    def counted(state: State, now: int) -> dict[str, int]:
        return {scope: len(times) for scope, times in state.recent.items()}

    ours, theirs = (Ledger(SqliteBackend(tmp_path / "l.db"), KEYS, windows=windows) for _ in range(2))
    await ours.open()
    await theirs.open()
    await calm(ours)
    await write(theirs, started("c_1"))
    await write(theirs, Committed(call="c_1", persona="ada", tool="t.act", summary="done"))
    ours.forget()
    assert await ours.look(counted) == await theirs.look(counted)
    await ours.close()
    await theirs.close()


async def test_an_older_copy_is_refused_however_often_it_is_tried(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "ledger.db")
    ledger = Ledger(SqliteBackend(database.path), KEYS)
    await ledger.open()
    await write(ledger, note("kept"))
    older = await database.dump()
    await calm(ledger)
    await database.restore(older)
    for _ in range(3):
        with pytest.raises(LedgerBroken, match="was already written"):
            await write(ledger, note("on an older copy"))
    await ledger.close()


async def test_events_that_the_head_does_not_know_are_said_to_be_that(
    pair: tuple[Ledger, Ledger], tmp_path: Path
) -> None:
    ours, _ = pair
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.execute(
        "INSERT INTO journal SELECT seq + 1, at, kind, call, persona, tool, conversation, ref, claim, key, body, prev, hash, mac "
        "FROM journal ORDER BY seq DESC LIMIT 1"
    )
    db.commit()
    db.close()
    with pytest.raises(LedgerBroken, match="its head does not know"):
        await write(ours, note("ours"))


async def test_what_comes_while_the_ledger_closes_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(SqliteBackend(tmp_path / "ledger.db"), KEYS)
    await ledger.open()
    ledger.callers = 2
    closing = asyncio.ensure_future(ledger.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="closed"):
        await write(ledger, note("too late"))
    await closing


async def test_many_callers_of_two_processes_leave_one_chain(pair: tuple[Ledger, Ledger]) -> None:
    async def caller(ledger: Ledger, name: str) -> None:
        for number in range(40):
            await write(ledger, note(f"{name} {number}"), durable=False)
            if number % 7 == 0:
                await asyncio.sleep(0.001)

    await soon(asyncio.gather(*(caller(ledger, f"{n}") for n in range(3) for ledger in pair)))
    for ledger in pair:
        assert await sound(ledger)


def test_a_row_cannot_be_replaced_through_a_connection_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def told() -> None:
        ledger = Ledger(SqliteBackend(path), KEYS)
        await ledger.open()
        await write(ledger, note("as it was"))
        await ledger.close()

    asyncio.run(told())
    db = connect(path, 0)
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        db.execute("INSERT OR REPLACE INTO journal SELECT * FROM journal WHERE seq = 1")
    db.close()


def test_another_program_that_replaces_a_row_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def told() -> None:
        ledger = Ledger(SqliteBackend(path), KEYS)
        await ledger.open()
        await write(ledger, note("as it was"), note("and after"))
        db = sqlite3.connect(path)
        db.execute(
            "INSERT OR REPLACE INTO journal SELECT seq, at, kind, call, 'eve', tool, conversation, ref, claim, key, body, "
            "prev, hash, mac FROM journal WHERE seq = 1"
        )
        db.commit()
        db.close()
        report = await verify(ledger.backend, KEYS)
        assert (report.ok, report.bad_event) == (False, 1)
        await ledger.close()

    asyncio.run(told())
