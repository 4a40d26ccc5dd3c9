"""Whatever happens to files, refs and rules: a gate with a cache answers as one without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.result import Result
from toolgate.gate.cache import Cache
from toolgate.workspace.git import store, view

from .world import CHANGES, GIT_CHANGES, World

STEPS = 110
TICK_NS = 20_000_000
"""The clock that stamps files on Linux stands still for no longer; 2 s would leave no time for anything to be served."""


@pytest.fixture(autouse=True)
def fine_stamps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (store, view):
        monkeypatch.setattr(module, "SETTLED_NS", TICK_NS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
async def test_any_interleaving_of_reads_and_changes_is_answered_as_without_a_cache(
    tmp_path: Path, seed: int
) -> None:
    world = World(tmp_path, seed).with_history()
    served: Counter[str] = Counter()
    async with (
        toolgate.open(world.root, world.config, "memory") as caching,
        toolgate.open(world.root, world.config, "memory") as plain,
    ):
        plain.services.cache = Cache(0)
        for _ in range(STEPS):
            fate = world.dice.random()
            if fate < 0.15:
                world.dice.choice(CHANGES)(world)
            elif fate < 0.18:
                world.dice.choice(GIT_CHANGES)(world)
            elif fate < 0.22:
                await world.ours(caching)
            tool, args = world.question()
            for _ in range(world.dice.choice((1, 1, 3, 4))):
                found = await caching.call(tool, args, persona="ada")
                wanted = await plain.call(tool, args, persona="ada")
                assert said(found) == said(wanted), (tool, args)
                assert not wanted.meta.cached
                served[tool] += found.meta.cached
    for tool in ("code.read", "fs.read", "code.search", "code.list", "fs.list", "fs.find"):
        assert served[tool], f"{tool} was never served: a cache that serves nothing is always right"


def said(result: Result) -> tuple[bool, Any, Any]:
    return result.ok, timeless(result.data), result.error and (result.error.code, result.error.message)


def timeless(data: Any) -> Any:
    """A line that is not committed yet is dated by the moment of asking."""
    if isinstance(data, list):
        return [timeless(each) for each in data]
    if not isinstance(data, dict):
        return data
    dated = data.get("author") == "Not Committed Yet"
    return {name: timeless(value) for name, value in data.items() if not (dated and name == "date")}
