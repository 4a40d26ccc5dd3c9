from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import toolgate
from toolgate.facade import Gate

from .world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, 7)


@pytest.fixture
async def gate(world: World) -> AsyncIterator[Gate]:
    async with toolgate.open(world.root, world.config, "memory") as opened:
        yield opened
