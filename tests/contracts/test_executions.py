"""Traces of programs: what every database keeps of them, and lets go."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gates import NOON, FixedClock
from servers.postgres import Server
from toolgate.core.errors import InvalidArgs
from toolgate.ledger.traces import TracedProgram, Traces, days_of, fit
from toolgate.ledger.verify import verify
from toolgate.storage import schema
from toolgate.storage.executions import DAY, Executions, Keep
from toolgate.storage.port import Filter
from toolgate.storage.postgres_connect import SETTINGS

from .databases import Database, Postgres, Sqlite
from .ledgers import KEYS, Opener, note, write


def program(code: str = "print(1)", **more: Any) -> TracedProgram:
    given: dict[str, Any] = {"call": "c_1", "persona": "ada", "tool": "exec.python", "language": "python"}
    return TracedProgram(**given | {"code": code, "exit_code": 0, "duration_ms": 10.0} | more)


def wrong(stderr: str, **more: Any) -> TracedProgram:
    return program(**{"exit_code": 1, "stderr": stderr} | more)


async def test_what_is_added_is_read_back_with_its_category(database: Database, opened: Opener) -> None:
    traces = Traces((await opened(database)).backend, FixedClock())
    ident = await traces.add(
        wrong(
            "NameError: name 'x' is not defined", stdout="grüße 🌱", session="talk", trigger_message="what is x?",
            llm_reasoning="I look it up", duration_ms=12.5,
        )
    )  # fmt: skip
    [row] = await traces.find(Executions())
    assert (row.id, row.created_at, row.call, row.persona, row.tool) == (
        ident,
        NOON,
        "c_1",
        "ada",
        "exec.python",
    )
    assert (row.success, row.exit_code, row.error_category, row.limit_hit) == (False, 1, "reference", "")
    assert (row.stdout, row.session_id, row.duration_ms) == ("grüße 🌱", "talk", 12.5)
    assert (row.trigger_message, row.llm_reasoning) == ("what is x?", "I look it up")


async def test_a_program_that_was_ended_has_no_exit_code_and_names_its_limit(
    database: Database, opened: Opener
) -> None:
    traces = Traces((await opened(database)).backend, FixedClock())
    await traces.add(program("while True: pass", exit_code=None, limit="cpu"))
    await traces.add(program())
    good, bad = await traces.find(Executions())
    assert (good.success, good.error_category) == (True, "")
    assert (bad.exit_code, bad.success, bad.limit_hit, bad.error_category) == (None, False, "cpu", "timeout")


async def test_texts_that_no_database_holds_are_made_to_fit(database: Database, opened: Opener) -> None:
    traces = Traces((await opened(database)).backend, FixedClock(), text_bytes=1000)
    await traces.add(program("a\0b\udc80", stderr="é" * 5000 + "the end", exit_code=3))
    [row] = await traces.find(Executions())
    assert row.code == "a\ufffdb?"
    assert row.stderr.endswith("the end")
    assert "bytes left out" in row.stderr
    assert len(row.stderr.encode()) < 1100


async def test_rows_are_filtered_newest_first_and_page_by_page(database: Database, opened: Opener) -> None:
    clock = FixedClock()
    traces = Traces((await opened(database)).backend, clock)
    for number in range(6):
        clock.advance(1)
        made = wrong("TypeError: x", call=f"c_{number}") if number % 2 else program(call=f"c_{number}")
        await traces.add(made if number < 5 else program(call="c_5", persona="bob", session="talk\0"))
    calls = [row.call for row in await traces.find(Executions())]
    assert calls == ["c_5", "c_4", "c_3", "c_2", "c_1", "c_0"]
    for wanted, expected in (
        (Executions(success=False), ["c_3", "c_1"]),
        (Executions(success=True, persona="ada"), ["c_4", "c_2", "c_0"]),
        (Executions(error_category="type", limit=1), ["c_3"]),
        (Executions(persona="bob"), ["c_5"]),
        (Executions(session_id="nobody"), []),
        (Executions(call="c_2"), ["c_2"]),
        (Executions(since=NOON + 5_000_000), ["c_5", "c_4"]),
        (Executions(since=NOON + 6_000_000, success=False), []),
    ):
        assert [row.call for row in await traces.find(wanted)] == expected, wanted
    seen: list[str] = []
    cursor = 0
    while page := await traces.find(Executions(before=cursor, limit=4)):
        seen += [row.call for row in page]
        cursor = page[-1].seq
    assert seen == calls


async def test_what_is_too_old_or_too_much_goes_and_the_newest_stays(
    database: Database, opened: Opener
) -> None:
    clock = FixedClock()
    traces = Traces((await opened(database)).backend, clock, Keep(days=2, rows=3))
    for number in range(5):
        await traces.add(program(call=f"c_{number}"))
    assert [row.call for row in await traces.find(Executions())] == ["c_4", "c_3", "c_2"]
    clock.advance(2 * DAY / 1_000_000 + 1)
    await traces.add(program(call="c_5"))
    assert [row.call for row in await traces.find(Executions())] == ["c_5"]


async def test_patterns_summary_and_failures_say_what_goes_wrong_most(
    database: Database, opened: Opener
) -> None:
    clock = FixedClock()
    traces = Traces((await opened(database)).backend, clock)
    await traces.add(wrong("TypeError: long ago"))
    clock.advance(8 * 86_400)
    for number in range(4):
        await traces.add(wrong(f"Traceback\nTypeError: {number}", session="talk", code="x" * 500))
    await traces.add(program(exit_code=None, limit="time", duration_ms=60.0))
    await traces.add(program(duration_ms=30.0, persona="bob"))
    found = await traces.summary(7)
    assert (found["total"], found["successful"], found["failed"]) == (6, 1, 5)
    assert (found["success_rate"], found["avg_ms"]) == (0.1667, round(130 / 6, 3))
    assert [(kind["category"], kind["count"]) for kind in found["errors"]] == [("type", 4), ("timeout", 1)]
    examples = found["errors"][0]["examples"]
    assert [example["error"] for example in examples] == ["TypeError: 3", "TypeError: 2", "TypeError: 1"]
    assert len(examples[0]["code"]) == 200
    assert found["errors"][1]["examples"][0]["error"] == "time"
    assert (await traces.summary(7, "bob"))["failed"] == 0
    assert len(await traces.failures("talk", limit=2)) == 2
    assert [row.limit_hit for row in await traces.failures(limit=1)] == ["time"]
    assert (await traces.summary(30))["errors"][0]["count"] == 5
    with pytest.raises(InvalidArgs):
        await traces.failures(limit=0)
    with pytest.raises(InvalidArgs):
        await traces.summary(-1)


async def test_traces_are_no_part_of_the_chain(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    await write(ledger, note("before"))
    await Traces(ledger.backend, FixedClock(), Keep(rows=1)).add(program())
    await Traces(ledger.backend, FixedClock(), Keep(rows=1)).add(program())
    await write(ledger, note("after"))
    assert (await verify(ledger.backend, KEYS)).events == 2


async def test_a_ledger_of_the_first_version_is_upgraded_in_place(tmp_path: Path, opened: Opener) -> None:
    first = Sqlite(tmp_path / "ledger.db")
    db = sqlite3.connect(first.path)
    db.executescript(_first("sqlite"))
    db.execute("PRAGMA user_version = 1")
    db.close()
    await _upgraded(first, opened)
    assert await first.run("PRAGMA user_version") == [(schema.VERSION,)]


async def test_a_postgresql_ledger_of_the_first_version_is_upgraded_in_place(
    postgres_server: Server, opened: Opener
) -> None:
    first = Postgres(postgres_server)
    hand = await asyncpg.connect(first.dsn, server_settings=SETTINGS)
    await hand.execute(_first("postgres"))
    await hand.execute("CREATE TABLE toolgate_schema (version INTEGER NOT NULL)")
    await hand.execute("INSERT INTO toolgate_schema VALUES (1)")
    await hand.close()
    await _upgraded(first, opened)
    assert await first.run("SELECT version FROM toolgate_schema") == [(schema.VERSION,)]
    await first.close()


def _first(dialect: str) -> str:
    return resources.files("toolgate.storage").joinpath(f"sql/{dialect}_001_journal.sql").read_text()


async def _upgraded(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    await write(ledger, note("kept"))
    traces = Traces(ledger.backend, FixedClock())
    await traces.add(program())
    await opened.close()
    again = await opened(database)
    assert len(await again.backend.rows(Filter())) == 1
    assert len(await again.backend.executions(Executions())) == 1
    assert (await verify(again.backend, KEYS)).ok


@pytest.mark.parametrize(
    ("period", "days"),
    [("7days", 7), ("1day", 1), ("12hours", 0.5), ("2weeks", 14), ("1month", 30), ("all", 3650)],
)
def test_periods_are_numbers_of_days(period: str, days: float) -> None:
    assert days_of(period) == days


@pytest.mark.parametrize("period", ["", "days", "0days", "-1day", "7 days", "1year", "99999days"])
def test_what_is_no_period_is_said(period: str) -> None:
    with pytest.raises(InvalidArgs):
        days_of(period)


def test_a_short_text_is_kept_as_it_is() -> None:
    assert fit("abc", 3) == "abc"
