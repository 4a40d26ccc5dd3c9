"""Every attack of the table fails in every mode, and the host is none the worse for it.

One host for each mode, in a process of its own: as root, and as an unprivileged user with and without namespaces. A sample
has every attack too, each in one of its modes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from sampling import cases
from sandbox.remote import modes

from .attack import LAYERS
from .hosts import faults, run
from .table import ATTACKS, SECTIONS

HANDLES = 60
"""What the processes that are kept ready hold; a leak would be a hundred times as much."""
_ROWS = [
    pytest.param(mode, name, id=f"{mode}: {name}")
    for mode in modes()
    for name, attack in ATTACKS.items()
    if mode in attack.modes
]


@cache
def everything(mode: str, session: pytest.Session) -> dict[str, Any]:
    """All attacks of this run, one after another; only those that are collected are run."""
    rows = cases(session, "test_it_is_stopped")
    return run(mode, [row["name"] for row in rows if row["mode"] == mode])


@pytest.mark.sample(1, over="mode")
@pytest.mark.parametrize(("mode", "name"), _ROWS)
def test_it_is_stopped(mode: str, name: str, request: pytest.FixtureRequest) -> None:
    report = everything(mode, request.session)["attacks"][name]
    assert not faults(ATTACKS[name], report, mode), report


@pytest.mark.parametrize("mode", modes())
def test_nothing_is_left_behind(mode: str, request: pytest.FixtureRequest) -> None:
    found = everything(mode, request.session)
    assert found["behind"] == []
    assert found["handles"] < HANDLES


def test_there_are_enough_of_them_and_every_layer_stops_some() -> None:
    languages = [attack.language for attack in ATTACKS.values()]
    assert languages.count("python") >= 80
    assert languages.count("shell") >= 15
    stopping = {layer for attack in ATTACKS.values() for layer in attack.stopped_by}
    assert stopping == set(LAYERS)
    assert all(SECTIONS.values())
