"""The process that runs jobs is killed; another takes over. Nothing is lost, nothing happens twice, nothing is made up."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from servers.postgres import Server
from toolgate import Gate
from toolgate.core.errors import Conflict
from toolgate.ledger.verify import verify

from .conftest import Start
from .world import KEYS, World, call, in_state, lines, opened, until


async def test_a_killed_runner_is_taken_over_and_no_effect_happens_twice(
    world: World, database: str | None, start: Start
) -> None:
    async with opened(world, database) as gate:

        async def submit(kind: str, args: dict[str, object]) -> str:
            return await gate.jobs.submit(kind, args, "ada")

        three = [call("w.keyed", x="a1"), call("w.keyed", x="a2", hold="after"), call("w.keyed", x="a3")]
        resumed = await submit("calls", {"calls": three})
        before = await submit("call", call("w.keyed", x="b", hold="before"))
        lost = await submit("call", call("w.append", x="c", hold="after"))
        read = await submit("call", call("w.look", x="d", hold="yes"))
        asked = await submit("call", call("w.ask", x="e"))
        first = start(database)

        async def all_stand() -> bool:
            standing = set(lines(world.at)) == {"a2", "b", "c", "d"}
            return standing and (await gate.jobs.get(asked)).state == "waiting"

        await until(all_stand)
        first.kill()
        first.wait()
        later = await submit("call", call("w.keyed", x="f"))
        world.go.touch()
        start(database)
        for ident, result in ((before, "did b"), (read, "saw d"), (later, "did f")):
            assert (await in_state(gate, ident, "done")).result == result
        assert (await in_state(gate, resumed, "done")).result[0::2] == ["did a1", "did a3"]

        job = await in_state(gate, lost, "unknown")
        assert job.error is not None
        assert job.error["code"] == "unknown_outcome"
        question = (await in_state(gate, asked, "waiting")).question
        await gate.answer(question, "approve")  # in this process; the runner is another
        assert (await in_state(gate, asked, "done")).result == "did e"
        assert Counter(world.did()) == Counter(["a1", "a2", "a3", "b", "c", "e", "f"])

        await _only_a_human_settles_what_is_unknown(gate, world, lost, job.call)
        assert (await verify(gate.services.ledger.backend, KEYS)).ok


async def _only_a_human_settles_what_is_unknown(gate: Gate, world: World, lost: str, unknown: str) -> None:
    with pytest.raises(Conflict, match=unknown):
        await gate.jobs.retry(lost)
    await gate.resolve(unknown, "not")
    again = await gate.jobs.retry(lost)
    assert (await in_state(gate, again, "done")).result == "did c"
    assert world.did().count("c") == 2  # once more, because a human said that it had not happened


async def test_two_processes_run_one_schedule_and_each_tick_happens_once(
    world: World, postgres_server: Server, start: Start
) -> None:
    dsn = postgres_server.fresh_dsn()
    async with opened(world, dsn) as gate:
        await gate.jobs.schedule("beat", "* * * * * *", "call", call("w.append", x="tick"), "ada")
        first = start(dsn)
        start(dsn, "stand-by")

        async def so_many(number: int) -> bool:
            return len(world.did()) >= number

        await until(lambda: so_many(2))
        first.kill()
        first.wait()
        had = len(world.did())
        await until(lambda: so_many(had + 2))  # the other one goes on
        await gate.jobs.unschedule("beat")
        await asyncio.sleep(1.5)  # a tick may be on its way
        jobs = await gate.jobs.find(limit=100)
        assert {job.schedule for job in jobs} == {"beat"}
        done = [job for job in jobs if job.state == "done"]
        assert len({job.call for job in done}) == len(done)
        # a tick that was under way when its runner died is unknown, and was not made again
        assert len(done) <= len(world.did()) <= len(jobs)
        assert {job.state for job in jobs} <= {"done", "unknown"}
        assert await gate.jobs.schedules() == []
