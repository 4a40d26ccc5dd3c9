"""Kill -9 of a host, of its zygote or of a job, at random moments, leaves nothing behind; and a host goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest

from sampling import sampled
from sandbox.remote import modes

from .hosts import environment

KILLS = 15
MODES = sampled(modes(), 1, "killing")


@cache
def killed(mode: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "attacks.sandbox.killing", mode]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=110, cwd="/", env=environment())
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_everything_was_killed_that_should_be(mode: str) -> None:
    kinds = Counter(killed(mode)["kills"])
    assert kinds.total() == KILLS, kinds
    assert set(kinds) == {"host", "zygote", "job"}


@pytest.mark.parametrize("mode", MODES)
def test_no_process_no_mount_and_no_directory_is_left(mode: str) -> None:
    found = killed(mode)
    assert (found["processes"], found["mounts"], found["files"]) == ([], [], [])


@pytest.mark.parametrize("mode", MODES)
def test_a_host_whose_zygotes_and_jobs_were_killed_still_runs_programs(mode: str) -> None:
    assert killed(mode)["last_word"] == "well"
