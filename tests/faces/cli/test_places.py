"""Another ledger, or an older copy, at a path where this user has seen one: said by trust, verify and doctor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from toolgate.project import config, trust
from toolgate.project import record as records

from .driving import Cli

Way = Callable[[Cli, Path], None]


def _ping(cli: Cli, times: int) -> None:
    for _ in range(times):
        assert cli("call", "system.ping").code == 0


def _empty(cli: Cli, root: Path) -> None:
    for file in (root / ".toolgate").glob("ledger.db*"):
        file.unlink()
    _ping(cli, 1)


def _older(cli: Cli, root: Path) -> None:
    shutil.copy(root / "older.db", root / ".toolgate" / "ledger.db")


def _another(cli: Cli, root: Path) -> None:
    shutil.rmtree(root / ".toolgate")
    assert "there was another ledger before" in cli("trust", "--yes").err
    _ping(cli, 5)


@pytest.mark.parametrize("way", [_empty, _older, _another])
def test_a_ledger_that_is_not_the_one_that_was_seen_is_said(cli: Cli, project: Path, way: Way) -> None:
    _ping(cli, 1)
    shutil.copy(project / ".toolgate" / "ledger.db", project / "older.db")
    _ping(cli, 2)
    assert cli("ledger", "verify").code == 0
    way(cli, project)
    found = cli("ledger", "verify")
    assert found.code == 1
    assert "before" in found.err
    assert "was seen here before" in (told := cli("doctor").out) or "another ledger before" in told
    assert cli("ledger", "checkpoint").code == 0  # said to be the right one
    assert cli("ledger", "verify").code == 0


def test_what_was_seen_is_not_forgotten_for_a_shorter_ledger(cli: Cli, project: Path) -> None:
    _ping(cli, 3)
    seen = records.seen(project, config.state_dir())
    assert seen["project"] == trust.project_id(project)
    _empty(cli, project)
    assert records.seen(project, config.state_dir()) == seen


def test_stats_and_doctor_show_how_the_ledger_grows(cli: Cli) -> None:
    _ping(cli, 2)
    grown = cli("stats", "--json").data["growth"]
    assert grown["bytes"] > 0
    assert grown["database_bytes"] > 0
    assert grown["personas"][-1]["persona"] == "builder"
    assert "the ledger grew by" in cli("stats").out
    assert "bytes in a day, most of them by builder" in cli("doctor").out


def test_verify_of_an_export_says_what_is_signed_and_what_is_not(cli: Cli, project: Path) -> None:
    _ping(cli, 1)
    assert cli("ledger", "checkpoint", "--out", "c.json").code == 0
    signed = cli("ledger", "verify", "--json").data["signed_to"]
    _ping(cli, 1)
    (project / "e.jsonl").write_text(cli("ledger", "export").out)
    told = cli("ledger", "verify", "--export", "e.jsonl", "--checkpoint", "c.json").out
    assert f"events 1 to {signed} are covered by a checkpoint" in told
    assert f"events {signed + 1} to {signed + 2} are not signed" in told
    assert "are not signed" in cli("ledger", "verify", "--export", "e.jsonl").out


def test_nothing_young_is_archived_and_the_command_says_why(cli: Cli) -> None:
    _ping(cli, 1)
    refused = cli("ledger", "archive", "out")
    assert refused.code != 0
    assert "there is nothing to archive" in refused.err
