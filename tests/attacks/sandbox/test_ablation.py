"""Each layer is needed: without it, and with all others, an attack gets through that otherwise fails."""

from __future__ import annotations

import fcntl
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sampling import cases
from sandbox.remote import modes
from toolgate.sandbox.inside.order import LAYERS

from .ablations import ABLATIONS, Ablation
from .hosts import command, environment

_TRIED = [
    pytest.param(each.layer, each, id=f"{each.title}, {each.mode}")
    for each in ABLATIONS
    if each.mode in modes()
]


@cache
def both(mode: str, session: pytest.Session) -> dict[str, Any]:
    """What each attack of a mode that is collected said with all layers and without its own."""
    tried = [case["one"] for case in cases(session, "test_only_this_layer_stops_it")]
    argv = command("attacks.sandbox.ablate", mode, *(one.title for one in tried if one.mode == mode))
    # where a layer is left out, programs meet on the machine's own ports and keys: one run at a time
    with open(Path(tempfile.gettempdir()) / "toolgate-ablation.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=120, cwd="/", env=environment()
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.sample(1, over="one")
@pytest.mark.parametrize(("layer", "one"), _TRIED)
def test_only_this_layer_stops_it(layer: str, one: Ablation, request: pytest.FixtureRequest) -> None:
    if layer == "cgroup" and not _in_a_control_group():
        pytest.skip("this machine has only one control group, so there is nothing to learn")
    with_all, without = both(one.mode, request.session)[one.title]
    assert not with_all["breach"], with_all
    assert without["breach"], without


def _in_a_control_group() -> bool:
    return any(line.split(":", 2)[2] != "/" for line in Path("/proc/self/cgroup").read_text().splitlines())


def test_every_layer_that_can_be_left_out_is_shown() -> None:
    assert {each.layer for each in ABLATIONS} == LAYERS


def test_a_zygote_that_was_not_started_for_it_leaves_no_layer_out() -> None:
    argv = command("attacks.sandbox.ablate", "refusal")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/", env=environment())
    assert "this zygote leaves no layer out" in done.stdout, done
