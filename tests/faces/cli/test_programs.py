"""`toolgate stats --code` and `toolgate failures`: what became of programs, for a person and for a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import toolgate
from toolgate.ledger.traces import TracedProgram

from .driving import Cli


@pytest.fixture
def ran(project: Path) -> None:
    """Three programs of the builder, one of which tries to speak to the terminal."""

    async def run() -> None:
        async with toolgate.open(project) as gate:
            for code, stderr, exit_code, session in (
                ("print(1)", "", 0, "talk"),
                ("x = 1\n1 + 'a'", "Traceback\nTypeError: no\n", 1, "talk"),
                ("foo\x1b[2J\u202e", "NameError: \x1b]0;mine\x07", 1, "other"),
            ):
                await gate.traces.add(
                    TracedProgram(
                        call="c_1", persona="builder", tool="exec.python", language="python", code=code, stderr=stderr,
                        exit_code=exit_code, duration_ms=20, session=session,
                    )
                )  # fmt: skip

    asyncio.run(run())


@pytest.mark.usefixtures("ran")
def test_stats_of_programs_say_how_many_failed_and_how(cli: Cli) -> None:
    shown = cli("stats", "--code")
    assert "3 programs: 1 succeeded (33.3%), 2 failed, 20.0 ms on average" in shown.out
    assert "1 × type" in shown.out
    assert "\x1b" not in shown.out
    data = cli("stats", "--code", "--period", "1hour", "--json").data
    assert (data["total"], data["failed"], data["period"]) == (3, 2, "1hour")
    assert {kind["category"] for kind in data["errors"]} == {"type", "reference"}
    assert cli("stats", "--code", "--period", "never").code == 2
    assert cli("stats", "--code", "--persona", "reader", "--json").data["total"] == 0


@pytest.mark.usefixtures("ran")
def test_failures_show_code_and_error_newest_first_and_cannot_speak_to_the_terminal(cli: Cli) -> None:
    shown = cli("failures")
    assert (
        shown.out.index("foo⟨U+001B⟩[2J⟨U+202E⟩")
        < shown.out.index("1 + 'a'")
        < shown.out.index("TypeError: no")
    )
    assert "\x1b" not in shown.out
    assert [row["session_id"] for row in cli("failures", "1", "--json").data] == ["other"]
    [row] = cli("failures", "--conversation", "talk", "--json").data
    assert (row["code"], row["error_category"]) == ("x = 1\n1 + 'a'", "type")


def test_without_any_program_both_say_so(cli: Cli) -> None:
    assert "no program was run" in cli("stats", "--code").out
    assert "no program failed" in cli("failures").out
    assert cli("failures", "0").code == 2
