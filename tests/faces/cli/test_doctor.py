"""The doctor: all well, and each ailment with its cure."""

from __future__ import annotations

import os
import select
import sqlite3
from pathlib import Path

import pytest

from toolgate.gate import reconcile

from .driving import Cli, Done, finish, start


def states(done: Done) -> dict[str, str]:
    return {finding["what"]: finding["state"] for finding in done.data}


def test_a_healthy_project_has_nothing_but_ticks(cli: Cli) -> None:
    cli("call", "system.ping")
    done = cli("doctor", "--json")
    assert (done.code, set(states(done).values())) == (0, {"ok"})
    assert {"python", "sqlite", "toolgate.yaml", "trust", "key", "database", "growth", "head", "clock", "journal mode", "disk",
            "permissions", "gate", "running calls", "unknown calls", "images", "open questions", "policy tests",
            "sandbox", "project environment"} == set(states(done))  # fmt: skip
    shown = cli("doctor").out
    assert shown.count("✓") == len(done.data)


def test_nothing_set_up_is_said_with_what_to_do(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = cli("doctor", "--root", str(tmp_path / "empty"))
    assert (done.code, "fix: run `toolgate init`" in done.out) == (1, True)


def test_what_wants_attention_is_a_warning_and_not_a_failure(cli: Cli) -> None:
    cli("call", "notes.append", "--arg", "path=a.md", "--arg", "text=x", "--no-wait")
    cli("call", "more.lose")
    done = cli("doctor", "--json")
    assert done.code == 0
    assert {what for what, state in states(done).items() if state == "warn"} == {
        "open questions",
        "unknown calls",
    }
    (unknown,) = (finding for finding in done.data if finding["what"] == "unknown calls")
    assert "toolgate ledger resolve c_" in unknown["fix"]
    assert cli("doctor").out.count("!") == 2


def test_a_call_that_runs_longer_than_it_may_is_said_and_can_be_resolved(
    cli: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process lives, so nobody settles it; and once its time is over, nobody will."""
    os.mkfifo(tmp_path / "said")
    listening = os.open(tmp_path / "said", os.O_RDONLY | os.O_NONBLOCK)
    running = start("call", "more.hang", "--arg", f"said={tmp_path / 'said'}", cwd=project)
    try:
        assert select.select([listening], [], [], 30)[0], "the call did not start"
        call = cli("ledger", "tail", "--tool", "more.hang", "--json").data[-1]["call"]
        early = cli("ledger", "resolve", call, "not")
        assert (early.code, "at the latest" in early.err) == (1, True)
        monkeypatch.setattr(reconcile, "SLACK", -2000.0)
        done = cli("doctor", "--json")
        (said,) = (finding for finding in done.data if finding["what"] == "running calls")
        assert said["state"] == "warn"
        assert call in said["found"]
        assert f"toolgate ledger resolve {call}" in said["fix"]
        assert cli("ledger", "resolve", call, "not").code == 0
        assert states(cli("doctor", "--json"))["running calls"] == "ok"
        assert cli("ledger", "verify").code == 0
    finally:
        running.kill()
        finish(running)
        os.close(listening)


def test_what_a_killed_process_left_behind_is_settled_and_said(
    cli: Cli, project: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "said")
    listening = os.open(tmp_path / "said", os.O_RDONLY | os.O_NONBLOCK)
    running = start("call", "more.hang", "--arg", f"said={tmp_path / 'said'}", cwd=project)
    try:
        assert select.select([listening], [], [], 30)[0], "the call did not start"
        assert cli("doctor").code == 0  # a living owner's call is left alone
        assert cli("ledger", "tail", "--tool", "more.hang", "--json").data[-1]["kind"] == "started"
    finally:
        running.kill()
        finish(running)
        os.close(listening)
    done = cli("doctor", "--json")
    assert {what for what, state in states(done).items() if state == "warn"} == {
        "running calls",
        "unknown calls",
    }
    assert "1 of dead owners settled just now" in str(done.data)
    assert cli("ledger", "tail", "-n", "1", "--json").data[0]["kind"] == "unknown"


def key_of(state: Path) -> Path:
    (key,) = (state / "keys").glob("*.json")
    return key


def test_a_key_that_others_can_read_is_wrong(cli: Cli, own_state_dir: Path) -> None:
    cli("call", "system.ping")
    key_of(own_state_dir).chmod(0o644)
    done = cli("doctor", "--json")
    assert (done.code, states(done)["key"]) == (1, "bad")


def test_a_missing_key_is_wrong(cli: Cli, own_state_dir: Path) -> None:
    cli("call", "system.ping")
    key_of(own_state_dir).unlink()
    done = cli("doctor", "--json")
    assert (done.code, states(done)["key"], states(done)["head"]) == (1, "bad", "bad")


def test_failing_policy_tests_are_wrong(cli: Cli, project: Path) -> None:
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(text.replace("expect: deny", "expect: allow"))
    done = cli("doctor", "--json")
    assert (done.code, states(done)["policy tests"]) == (1, "bad")


def test_a_broken_configuration_and_a_broken_plugin_are_wrong(cli: Cli, project: Path) -> None:
    (project / "more.py").write_text("raise RuntimeError('no')")
    done = cli("doctor", "--json")
    assert (done.code, states(done)["gate"]) == (1, "bad")
    (project / "toolgate.yaml").write_text("version: 1\nx: 1\n")
    assert states(cli("doctor", "--json"))["toolgate.yaml"] == "bad"


@pytest.mark.parametrize(("mode", "state"), [(0o700, "ok"), (0o755, "warn"), (0o777, "bad")])
def test_the_state_directory_is_the_users_alone(cli: Cli, project: Path, mode: int, state: str) -> None:
    os.chmod(project / ".toolgate", mode)
    assert states(cli("doctor", "--json"))["permissions"] == state


def test_a_head_that_was_not_sealed_is_wrong(cli: Cli, project: Path) -> None:
    cli("call", "system.ping")
    database = sqlite3.connect(project / ".toolgate" / "ledger.db")
    with database:
        database.execute("UPDATE head SET mac = 'x'")
    database.close()
    done = cli("doctor", "--json")
    assert (done.code, states(done)["database"]) == (1, "bad")


def test_a_database_server_that_does_not_answer_is_wrong(cli: Cli, project: Path) -> None:
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(
        text + "ledger: {database: 'postgresql://nobody@127.0.0.1:1/none'}\n"
    )
    done = cli("doctor", "--json")
    assert (done.code, states(done)["database"]) == (1, "bad")
