"""One step of a job, made again after its process died: what the ledger knows decides, however long ago it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import toolgate
from gates import FixedClock
from toolgate import Gate
from toolgate.core.event import Started, Unknown
from toolgate.features.jobs.job import Spec
from toolgate.features.jobs.jobs import JobsPort
from toolgate.features.jobs.runner import CallAttempt, JobStep, Outcome, Slots
from toolgate.gate.stored import claim_of
from toolgate.ledger.ledger import View, Work

from .world import CONFIG, World, call

LONG = 49 * 3600


@dataclass
class Bench:
    gate: Gate
    clock: FixedClock
    world: World
    told: list[Mapping[str, Any]] = field(default_factory=list)

    def attempt(self, tool: str, **args: Any) -> CallAttempt:
        spec = Spec("call", call(tool, **args), "ada")
        return CallAttempt(JobsPort(self.gate), JobStep("j_1", spec, 1, tool, args), self._tell, Slots(1))

    async def make(self, tool: str, **args: Any) -> Outcome:
        return await asyncio.wait_for(self.attempt(tool, **args).make(), 60)

    async def _tell(self, news: Mapping[str, Any]) -> None:
        self.told.append(news)

    async def left(self, *more: Any) -> None:
        """What a process that died in the middle of the call left in the journal."""
        rest: dict[str, Any] = {
            "call": "c_dead",
            "persona": "ada",
            "tool": "w.append",
            "claim": "key/ada/j_1:1",
        }
        started = Started(
            **rest, owner="o_dead", digest="sha256:x", definition="sha256:y", args={}, rule="r", decision="allow",
            effectful=True,
        )  # fmt: skip
        unknown = Unknown(**rest, code="unknown_outcome", error="its process died")

        def decide(view: View) -> None:
            view.emit(started)
            if "unknown" in more:
                view.emit(unknown)

        await self.gate.services.ledger.do(Work(decide))


@pytest.fixture
async def bench(world: World) -> AsyncIterator[Bench]:
    clock = FixedClock()
    async with toolgate.open(world.root, CONFIG, "memory", tools=world.tools(), clock=clock) as gate:
        yield Bench(gate, clock, world)


async def test_a_step_that_was_done_gives_its_result_again_and_runs_nothing(bench: Bench) -> None:
    first = await bench.make("w.append", x="a")
    again = await bench.make("w.append", x="a")
    assert first["data"] == again["data"] == "did a"
    assert bench.world.did() == ["a"]


async def test_after_the_key_has_run_out_it_still_is_not_done_again(bench: Bench) -> None:
    await bench.make("w.append", x="a")
    bench.clock.advance(LONG)
    again = await bench.make("w.append", x="a")
    assert (again["ok"], again["data"]) == (True, None)
    assert "kept no longer" in again["note"]
    assert bench.world.did() == ["a"]


@pytest.mark.parametrize("after", [0, LONG])
async def test_a_step_whose_process_died_is_unknown_however_long_ago(after: int, bench: Bench) -> None:
    await bench.left()
    bench.clock.advance(after)
    outcome = await bench.make("w.append", x="a")
    assert (outcome["ok"], outcome["call"], outcome["error"]["code"]) == (False, "c_dead", "unknown_outcome")
    assert bench.world.did() == []


async def test_what_is_unknown_stays_so_even_if_its_tool_is_another_by_now(bench: Bench) -> None:
    await bench.left("unknown")
    outcome = await bench.make("w.append", x="a")
    assert outcome["error"]["code"] == "unknown_outcome"
    assert bench.world.did() == []


async def test_a_read_that_failed_is_made_again(bench: Bench) -> None:
    assert not (await bench.make("w.flaky", good=2))["ok"]
    assert (await bench.make("w.flaky", good=2))["data"] == "at try 2"


async def test_a_cancelled_step_says_how_its_call_was_settled(bench: Bench) -> None:
    task = asyncio.create_task(bench.attempt("w.append", x="a", hold="yes").make())
    while not bench.world.at.exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    claim = await claim_of(bench.gate.services.ledger, "ada", "j_1:1")
    assert claim is not None
    assert bench.told[-1] == {"call": claim.call, "outcome": "unknown"}


async def test_an_expired_question_ends_the_step(bench: Bench) -> None:
    task = asyncio.create_task(bench.make("w.ask", x="a"))
    while not any(news.get("state") == "waiting" for news in bench.told):
        await asyncio.sleep(0.01)
    bench.clock.advance(10_000)
    await bench.gate.services.desk.sweep()
    outcome = await task
    assert outcome["error"]["code"] == "expired"
    assert bench.world.did() == []
