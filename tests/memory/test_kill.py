"""Kill -9 while two processes write one user's memory: nothing is lost, nothing is there twice, and search is right at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import FixedClock
from sampling import dice, fewer
from toolgate.core.clock import SECOND
from toolgate.facade import Gate
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.store import ItemFilter
from toolgate.storage.port import Filter

from .world import POLICY, recalled, stored

TESTS = Path(__file__).parents[1]
PATIENCE = 60.0


class Worker:
    """A process of its own, and everything that it said."""

    def __init__(self, root: Path, database: str, what: str) -> None:
        command = [sys.executable, "-m", "memory.memory_to_kill", str(root), database, what]
        self.process = subprocess.Popen(
            command,
            cwd=TESTS,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        self.said: list[dict[str, Any]] = []
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            self.ready.set()
        self.ready.set()

    def wait_for(self, count: int) -> None:
        until = time.monotonic() + PATIENCE
        while len(self.said) < count and self.process.poll() is None:
            assert time.monotonic() < until, "the worker stands still"
            time.sleep(0.005)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_server").fresh_dsn()) if request.param == "postgres" else ""


async def test_two_processes_are_killed_while_they_write_and_nothing_is_lost_or_doubled(
    tmp_path: Path, database: str
) -> None:
    chance = dice("when the memory is killed")
    for turn in range(fewer(25, 1)):
        workers = [Worker(tmp_path, database, f"{name}{turn}") for name in ("left", "right")]
        for worker in workers:
            worker.wait_for(1 + chance.randrange(1, 60))
        for worker in workers:
            worker.kill()
        async with toolgate.open(tmp_path, POLICY, database or None) as gate:
            await _settled(gate)
            for worker, name in zip(workers, ("left", "right"), strict=True):
                await _check(gate, worker, f"{name}{turn}")


async def _settled(gate: Gate) -> None:
    """What the dead left open was looked up in the tables: nothing is in doubt."""
    kinds = Counter(row.kind for row in await gate.services.ledger.backend.rows(Filter(limit=100_000)))
    assert kinds["unknown"] == 0
    assert not await gate.services.ledger.look(lambda state, now: list(state.live))


async def _check(gate: Gate, worker: Worker, name: str) -> None:
    memory: Memory = gate.feature("memory")
    store = await memory.records()
    states = ("kept", "forgotten", "purged")
    items = [
        one
        for one in await store.find(ItemFilter(states=states, limit=100_000))
        if one.persona in ("ada", "human")
    ]
    by_id = {one.id: one for one in items}
    did = {(one["did"], one["number"]): one["id"] for one in worker.said if "did" in one}
    begun = max((one["number"] for one in worker.said if "begins" in one), default=0)
    for (op, number), ident in did.items():
        if op == "store":
            assert by_id[ident].state == "kept" or ("forget", number) in did or number == begun
        if op == "update" and by_id[ident].state != "purged":
            assert by_id[ident].content.endswith("second")
        if op == "forget":
            assert by_id[ident].state in ("forgotten", "purged")
        if op == "purge":
            assert by_id[ident].state == "purged"
            assert by_id[ident].content == ""
    contents = Counter(one.content.split()[2] for one in items if one.content.startswith(f"{name} "))
    assert set(contents.values()) <= {1}
    assert await store.unindexed() == []
    kept = {one.id for one in items if one.state == "kept" and one.content.startswith(f"{name} ")}
    found = {one["id"] for one in await recalled(gate, f"{name} counts", limit=100, neighbours=False)}
    assert found >= set(sorted(kept)[:100]) if len(kept) <= 100 else len(found) == 100
    assert {one.id for one in await store.get(sorted(found)) if one.state != "kept"} == set()


async def test_a_killed_roll_up_is_finished_by_the_next_and_writes_nothing_twice(tmp_path: Path) -> None:
    clock = FixedClock(1_767_603_600 * SECOND)  # 2026-01-05
    async with toolgate.open(tmp_path, POLICY, clock=clock) as gate:
        for day in range(40):
            await stored(gate, f"On day {day} the ferry carried {day * 7} cars.", conversation="ferry")
            clock.advance(24 * 3600)
    chance = dice("when the roll-up is killed")
    for _ in range(fewer(10, 1)):
        worker = Worker(tmp_path, "", "rollup")
        worker.wait_for(2)
        time.sleep(chance.uniform(0.0, 0.4))  # somewhere in the middle is all that is wanted
        worker.kill()
    worker = Worker(tmp_path, "", "rollup")
    worker.wait_for(3)
    worker.process.wait(PATIENCE)
    worker.kill()
    async with toolgate.open(tmp_path, POLICY) as gate:
        await _settled(gate)
        store = await (gate.feature("memory")).records()
        found = await store.find(ItemFilter(store="summaries", limit=10_000))
        assert len({(one.type, one.period, one.conversation) for one in found}) == len(found)
        counts = Counter(one.type for one in found)
        assert counts["conversation-summary"] == counts["daily-summary"] == 40
        assert counts["weekly-summary"] == 6
        assert counts["monthly-summary"] == 2
        assert await store.unindexed() == []
