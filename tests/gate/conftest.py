from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import KEYS, FixedClock, Witness, policy, toolset

Open = Callable[..., AbstractAsyncContextManager[toolgate.Gate]]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def opened(tmp_path: Path, clock: FixedClock, witness: Witness) -> Open:
    """Opens a gate in memory, with one rule about `t.*` and the tools of tests/gates.py."""

    @asynccontextmanager
    async def open_gate(
        decision: str = "allow", tools: Any = (), **more: Any
    ) -> AsyncIterator[toolgate.Gate]:
        channels, database = more.pop("channels", ()), more.pop("database", "memory")
        config = more.pop("config", None) or policy(decision, **more)
        async with toolgate.open(
            tmp_path, config=config, database=database, tools=[*toolset(witness, tmp_path), *tools], clock=clock,
            keys=KEYS, channels=channels,
        ) as gate:  # fmt: skip
            yield gate

    return open_gate
