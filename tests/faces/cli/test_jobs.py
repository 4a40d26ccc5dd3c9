"""`toolgate jobs` from the outside: submit, watch, approve, run, and the server that runs them too."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .driving import Cli, heard, start

PATIENCE = 30.0


def until(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError("it never came")


def end(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    return process.returncode


def test_a_job_is_submitted_run_by_another_process_approved_and_shown(project: Path, cli: Cli) -> None:
    assert "there are no jobs" in cli("jobs").out
    job = cli("jobs", "submit", "notes.append", '{"path": "hours.md", "text": "more"}', "--json").data["job"]
    said = cli("jobs")
    assert job in said.out
    assert "no process runs jobs here" in said.err
    assert any(one["what"] == "jobs" and one["state"] == "warn" for one in cli("doctor", "--json").data)
    runner = start("jobs", "run", cwd=project)
    try:
        assert "jobs are run here" in heard(runner)

        def shown() -> Any:
            return cli("jobs", "show", job[-8:], "--json").data

        question = until(lambda: shown()["question"])
        assert "waiting" in cli("jobs").out
        assert cli("jobs", "run").code == 1
        assert cli("approvals", question, "approve").code == 0
        until(lambda: shown()["state"] == "done")
        assert "more" in (project / "hours.md").read_text()
        bad = cli(
            "jobs", "submit", "more.fail", '{"message": "\\u001b[2J"}', "--persona", "reader", "--json"
        ).data["job"]
        until(lambda: cli("jobs", "show", bad, "--json").data["state"] == "failed")
        shown_bad = cli("jobs", "show", bad)
        assert "failed" in shown_bad.out
        assert "\x1b" not in shown_bad.out
        again = cli("jobs", "retry", bad, "--json").data
        assert again["repeats"] == bad
        assert cli("jobs", "cancel", job).code == 1
    finally:
        assert end(runner) == 0
    assert cli("ledger", "verify").code == 0


def test_schedules_are_made_listed_and_removed(cli: Cli) -> None:
    assert cli("jobs", "schedule", "nightly", "0 3 * * *", "more.echo", '{"text": "x"}').code == 0
    assert cli("jobs", "schedule", "nightly", "0 3 * * *", "more.echo", '{"text": "x"}').code == 1
    assert cli("jobs", "schedule", "wrong", "at three", "more.echo", '{"text": "x"}').code == 2
    assert cli("jobs", "schedules", "--json").data[0]["cron"] == "0 3 * * *"
    assert "nightly" in cli("jobs", "schedules").out
    assert cli("jobs", "unschedule", "nightly").code == 0
    assert "there are no schedules" in cli("jobs", "schedules").out
    assert cli("jobs", "show", "j_nothing").code == 1
    assert cli("jobs", "submit", "no.tool").code == 2


def test_the_server_runs_jobs_where_it_is_told_to_and_ends_cleanly(project: Path, cli: Cli) -> None:
    settings = project / "toolgate.yaml"
    settings.write_text(settings.read_text() + "jobs: {run: true}\n")
    server = start("up", "--port", "0", "--json", cwd=project)
    try:
        port = int(re.findall(r":(\d+)/", json.loads(heard(server, "stdout"))["data"]["api"])[0])
        job = cli("jobs", "submit", "more.echo", '{"text": "hello"}', "--persona", "reader", "--json").data[
            "job"
        ]
        until(lambda: cli("jobs", "show", job, "--json").data["result"] == "hello")
        import psutil

        listening = [one.laddr.port for one in psutil.Process(server.pid).net_connections("inet")]
        assert set(listening) == {port}
    finally:
        assert end(server) == 0


def test_doctor_says_that_the_package_is_missing_where_jobs_are_wanted(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(one["what"] == "jobs" for one in cli("doctor", "--json").data)
    settings = project / "toolgate.yaml"
    settings.write_text(settings.read_text() + "jobs: {run: true}\n")
    assert any(one["what"] == "jobs" and one["state"] == "ok" for one in cli("doctor", "--json").data)
    monkeypatch.setattr("toolgate.features.jobs.place.find_spec", lambda name: None)
    [found] = [one for one in cli("doctor", "--json").data if one["what"] == "jobs"]
    assert found["state"] == "bad"
    assert "toolgate[jobs]" in found["fix"]
