from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import toolgate
from gates import FixedClock
from servers.postgres import Server
from toolgate.facade import Gate

from .world import POLICY


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with toolgate.open(tmp_path, POLICY, "memory", clock=FixedClock()) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Gate]:
    """A gate whose memory is on disk, in either database."""
    database = None
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres_server")
        database = server.fresh_dsn()
    async with toolgate.open(tmp_path, POLICY, database) as found:
        yield found
