"""What only a terminal gets: plain log lines, a progress bar, the result's details, colours in the tour."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Cli, Terminal

Open = Callable[..., Terminal]


def test_logs_are_plain_lines_and_traces_need_debug(terminal: Open) -> None:
    code, shown = terminal("call", "more.fail", "--arg", "message=boom").end()
    assert code == 1
    assert "error more.fail raised" in shown
    assert "Traceback" not in shown
    code, shown = terminal("--debug", "call", "more.fail", "--arg", "message=boom").end()
    assert (code, "Traceback" in shown) == (1, True)


def test_a_result_comes_with_its_call_event_and_time(terminal: Open) -> None:
    code, shown = terminal("call", "system.ping").end()
    assert code == 0
    details = shown.splitlines()[-1]
    assert details.startswith("c_")
    assert " · event 3 · " in details


def test_verify_ends_without_leaving_its_bar_behind(terminal: Open, cli: Cli) -> None:
    cli("call", "system.ping")
    code, shown = terminal("ledger", "verify").end()
    erased = "\x1b[1A\x1b[2K"
    assert (code, shown.splitlines()[-1]) == (
        0,
        f"{erased}✓ 3 events: links, hashes, seals and tables are right",
    )


def test_the_tour_runs_at_a_terminal_too(terminal: Open) -> None:
    code, shown = terminal("demo", "--fast").end()
    assert (code, "9  Where to go next" in shown) == (0, True)
