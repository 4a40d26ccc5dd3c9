"""The tour: it works without a terminal, shows what it promises and leaves nothing behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from .driving import Cli, finish, start


def test_the_tour_shows_all_seven_steps_and_leaves_nothing_behind(
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
        "✓ added a line", "… pending", "5  The ledger", "✓ 9 events", "6  A forgery",
        "event 6: its content does not match its hash", "event 6: its seal does not match the key",
        "7  Where to go next",
    ):  # fmt: skip
        assert part in done.out, part
    assert max(map(len, done.out.splitlines())) <= 80
    assert list(place.iterdir()) == []
    assert list(own_state_dir.iterdir()) == []


def test_the_tour_puts_the_environment_back(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(os.environ)
    there = set(os.listdir(tempfile.gettempdir()))
    assert cli("demo", "--fast", "--no-color").code == 0
    assert dict(os.environ) == before
    assert not {
        name for name in set(os.listdir(tempfile.gettempdir())) - there if name.startswith("toolgate-demo-")
    }
