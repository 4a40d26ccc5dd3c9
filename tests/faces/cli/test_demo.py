"""The tour: it works without a terminal, shows what it promises and leaves nothing behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from toolgate.faces.cli import up

from .driving import Cli, finish, start


def test_the_tour_shows_all_nine_steps_and_leaves_nothing_behind(
    tmp_path: Path, own_state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("COLUMNS", "80")
    done = finish(start("demo", cwd=tmp_path))
    assert (done.code, done.err) == (0, "")
    for part in (
        "1  What this is", "2  An allowed call", "✓ # Opening hours", "3  A denied call", "✗ not_allowed",
        "> 5 deny", "4  A call that asks", "+From May on: 8 to 18.", "approves it in your place",
        "✓ added a line", "at most once", "… pending", "5  The ledger", "✓ 9 events",
        "6  An agent at work", "Its model is scripted", "no model is asked", "✓ code.search pattern=percent · ok", "✓ code.read path=prices.py",
        "✗ fs.delete path=prices_old.py · not_allowed", "Access denied by creator.", "+    return subtotal - subtotal * percent / 100",
        "✓ fs.edit path=prices.py", "prices.py:4 divided a percentage", "7  Taken back", "$ toolgate undo ", "as it was, to the byte",
        "8  A forgery",
        "event 6: its content does not match its hash", "event 6: its seal does not match the key",
        "9  Where to go next",
    ):  # fmt: skip
        assert part in done.out, part
    assert max(map(len, done.out.splitlines())) <= 80
    assert list(place.iterdir()) == []
    assert list(own_state_dir.iterdir()) == []


def test_the_tour_puts_the_environment_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "1")  # which every command sets, and keeps
    before = dict(os.environ)
    assert cli("demo", "--fast", "--no-color").code == 0
    assert dict(os.environ) == before
    assert list(place.iterdir()) == []


def test_the_agent_of_the_sample_project_says_that_it_is_scripted_and_answers(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", "")  # so that it is put back
    guide = up.prepare_sample(tmp_path / "sample")
    done = cli("run", "when are we open?", "--root", str(guide.root))
    assert (done.code, done.out) == (0, "hours.md has the opening hours.\n")
    assert "scripted: it says what a file has, no model is asked" in done.err
    assert "code.read path=hours.md" in done.err
