"""What a job promises while its runner lives: progress, waiting, cancelling, retrying, time limits, schedules."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import toolgate
from toolgate import Gate
from toolgate.core.errors import (
    CallError,
    Conflict,
    InvalidArgs,
    NotAllowed,
    NotFound,
    SetupError,
    TooLarge,
    Unavailable,
    UnknownTool,
)
from toolgate.features.jobs.job import JobKind, Retry
from toolgate.storage.port import Filter

from .world import CONFIG, World, call, in_state, lines, opened, until


async def test_jobs_tell_how_far_they_are_wait_for_a_human_and_end_with_their_result(
    world: World, database: str | None
) -> None:
    async with opened(world, database) as gate, gate.jobs.running():
        slow = await gate.jobs.submit("call", call("w.steps"), "ada", "talk", reason="to see")
        asked = await gate.jobs.submit("call", call("w.ask", x="a"), "ada")
        refused = await gate.jobs.submit("call", call("w.ask", x="b"), "ada")

        async def half() -> bool:
            return (await gate.jobs.get(slow)).progress == 0.5

        await until(half)
        assert (await gate.jobs.get(slow)).message == "half\ufffdway"
        world.go.touch()
        for ident, answer in ((asked, "approve"), (refused, "deny")):
            question = (await in_state(gate, ident, "waiting")).question
            await gate.answer(question, answer, reason="so be it")  # type: ignore[arg-type]
        job = await in_state(gate, asked, "done")
        assert (job.result, world.did()) == ("did a", ["a"])
        job = await in_state(gate, refused, "failed")
        assert job.error is not None
        assert job.error["code"] == "denied"
        await gate.jobs.cancel(slow)  # it stands still and had no effect
        await _settled(gate, slow, "failed")
        rows = await gate.events(Filter(call=(await gate.jobs.get(asked)).call, kinds=("started",)))
        assert f'"transaction":"{asked}"' in rows[0].body
        assert rows[0].claim == f"key/ada/{asked}:1"


async def _settled(gate: Gate, ident: str, outcome: str) -> None:
    async def look() -> bool:
        return (await gate.jobs.get(ident)).outcome == outcome

    await until(look)
    assert (await gate.jobs.get(ident)).state == "cancelled"


async def test_a_cancelled_call_is_settled_by_the_gate_and_a_queued_job_never_runs(
    world: World, database: str | None
) -> None:
    async with opened(world, database, jobs={"concurrency": 1}) as gate:
        queued = await gate.jobs.submit("call", call("w.append", x="never"), "ada")
        assert (await gate.jobs.cancel(queued)).state == "cancelled"
        async with gate.jobs.running():
            running = await gate.jobs.submit("call", call("w.append", x="half", hold="yes"), "ada")
            await until(lambda: _stands(world, "half"))
            behind = await gate.jobs.submit("call", call("w.append", x="behind"), "ada")
            assert (await gate.jobs.cancel(running)).state == "cancelled"
            await _settled(gate, running, "unknown")
            assert (await in_state(gate, behind, "done")).result == "did behind"
            with pytest.raises(Conflict):
                await gate.jobs.cancel(running)
            with pytest.raises(Conflict, match="unknown"):
                await gate.jobs.retry(running)
        assert world.did() == ["half", "behind"]


async def _stands(world: World, where: str) -> bool:
    return where in lines(world.at)


async def test_failures_are_tried_again_as_told_and_refusals_never(world: World) -> None:
    async with opened(world, None) as gate, gate.jobs.running():
        patient = Retry(attempts=3, delay_s=0.05)
        job = await gate.jobs.wait(
            await gate.jobs.submit("call", call("w.flaky", good=3), "ada", retry=patient)
        )
        assert (job.state, job.result, job.attempt) == ("done", "at try 3", 3)

        world.tries = 0
        hasty = await gate.jobs.wait(await gate.jobs.submit("call", call("w.flaky", good=2), "ada"))
        assert (hasty.state, hasty.attempt) == ("failed", 1)
        again = await gate.jobs.wait(await gate.jobs.retry(hasty.id))
        assert (again.state, again.result, again.spec.root) == ("done", "at try 2", hasty.id)

        await gate.pause("ada")
        denied = await gate.jobs.wait(
            await gate.jobs.submit("call", call("w.flaky", good=1), "ada", retry=patient)
        )
        assert (denied.state, denied.attempt) == ("failed", 1)
        assert denied.error is not None
        assert denied.error["code"] == "not_allowed"


async def test_a_repeated_job_does_not_do_again_what_was_done(world: World) -> None:
    async with opened(world, None) as gate, gate.jobs.running():
        two = {"calls": [call("w.append", x="once"), call("w.flaky", good=2)]}
        failed = await gate.jobs.wait(await gate.jobs.submit("calls", two, "ada"))
        assert failed.state == "failed"
        again = await gate.jobs.wait(await gate.jobs.retry(failed.id))
        assert (again.state, again.result) == ("done", ["did once", "at try 2"])
        assert world.did() == ["once"]
        with pytest.raises(Conflict):
            await gate.jobs.retry(again.id)


async def test_a_job_that_takes_too_long_ends_and_says_what_is_known(world: World) -> None:
    async with opened(world, None) as gate, gate.jobs.running():
        read = await gate.jobs.submit("call", call("w.look", x="r", hold="yes"), "ada", timeout_s=0.5)
        wrote = await gate.jobs.submit("call", call("w.append", x="w", hold="yes"), "ada", timeout_s=0.5)
        asked = await gate.jobs.submit("call", call("w.ask", x="q"), "ada", timeout_s=0.5)
        found = [await gate.jobs.wait(ident) for ident in (read, wrote, asked)]
        assert [job.state for job in found] == ["failed", "unknown", "failed"]
        assert [job.error["code"] for job in found if job.error] == ["timeout", "unknown_outcome", "timeout"]


async def test_a_plugin_may_bring_a_kind_of_its_own(world: World) -> None:
    async def run(calls: Any, args: Any) -> Any:
        first = await calls.call("w.look", {"x": args["x"]})
        return await calls.call("w.look", {"x": first})

    async with opened(world, None) as gate, gate.jobs.running():
        gate.jobs.kinds["twice"] = JobKind(run, lambda args: ())
        job = await gate.jobs.wait(await gate.jobs.submit("twice", {"x": "it"}, "ada"))
        assert (job.state, job.result, job.spec.what) == ("done", "saw saw it", "twice")


@pytest.mark.parametrize(
    ("kind", "args", "persona", "error"),
    [
        ("call", call("w.nothing"), "ada", UnknownTool),
        ("call", call("w.look"), "ada", InvalidArgs),
        ("call", call("w.look", x=1), "ada", InvalidArgs),
        ("call", call("w.look", x="a"), "nobody", NotAllowed),
        ("call", call("w.look", x="a"), "human", NotAllowed),
        ("call", call("w.secret", password="hunter2hunter2"), "ada", InvalidArgs),
        ("call", {"tool": "w.look"} | {"arg": {}}, "ada", InvalidArgs),
        ("calls", {"calls": []}, "ada", InvalidArgs),
        ("calls", {"calls": [call("w.look", x="a"), "x"]}, "ada", InvalidArgs),
        ("other", {}, "ada", InvalidArgs),
    ],
)
async def test_what_could_never_run_is_refused_at_once(
    kind: str, args: dict[str, Any], persona: str, error: type[CallError], world: World
) -> None:
    async with opened(world, None) as gate:
        with pytest.raises(error):
            await gate.jobs.submit(kind, args, persona)
        assert await gate.jobs.find() == []
        assert not (world.root / ".toolgate" / "jobs.db").exists()


async def test_a_persona_sees_its_own_jobs_and_no_others(world: World) -> None:
    async with opened(world, None) as gate:
        mine = await gate.jobs.submit("call", call("w.look", x="m"), "ada")
        other = await gate.jobs.submit("call", call("w.look", x="o"), "bob")
        listed = await gate.call("jobs.list", persona="ada")
        assert [job["job"] for job in listed.data] == [mine]
        assert (await gate.call("jobs.status", {"job": mine}, persona="ada")).data["args"]["args"] == {
            "x": "m"
        }
        refused = await gate.call("jobs.status", {"job": other}, persona="ada")
        missing = await gate.call("jobs.status", {"job": "j_none"}, persona="ada")
        assert refused.error is not None
        assert missing.error is not None
        assert refused.error.code == missing.error.code == "not_found"
        with pytest.raises(NotFound):
            await gate.jobs.get("j_none")


async def test_schedules_are_checked_listed_and_removed(world: World) -> None:
    async with opened(world, None) as gate, gate.jobs.running():
        look = call("w.look", x="s")
        for name, cron, error in (
            ("Bad Name", "* * * * *", InvalidArgs),
            ("beat", "every minute", InvalidArgs),
            ("beat", "61 * * * *", InvalidArgs),
        ):
            with pytest.raises(error):
                await gate.jobs.schedule(name, cron, "call", look, "ada")
        await gate.jobs.schedule("beat", "* * * * * *", "call", look, "ada")
        with pytest.raises(Conflict):
            await gate.jobs.schedule("beat", "* * * * *", "call", look, "ada")
        assert [one.shown()["what"] for one in await gate.jobs.schedules()] == ["w.look"]

        async def ticked() -> bool:
            return sum(job.state == "done" for job in await gate.jobs.find("ada")) >= 1

        await until(ticked)
        await gate.jobs.unschedule("beat")
        assert await gate.jobs.schedules() == []
        with pytest.raises(NotFound):
            await gate.jobs.unschedule("beat")


async def test_one_process_runs_jobs_and_nothing_of_the_engine_listens_or_reaches_out(world: World) -> None:
    async with opened(world, None) as gate:
        before = set(psutil.Process().net_connections("inet"))
        assert not await gate.jobs.attended()
        async with gate.jobs.running():
            assert await gate.jobs.attended()
            async with opened(world, None) as other:
                with pytest.raises(Conflict):
                    async with other.jobs.running():
                        pass
            await gate.jobs.wait(await gate.jobs.submit("call", call("w.look", x="n"), "ada"))
            assert set(psutil.Process().net_connections("inet")) <= before
        assert not await gate.jobs.attended()
    mode = stat.S_IMODE((world.root / ".toolgate" / "jobs.db").stat().st_mode)
    assert mode == 0o600


async def test_what_is_stored_is_json_and_never_a_pickle(world: World) -> None:
    async with opened(world, None) as gate, gate.jobs.running():
        await gate.jobs.wait(await gate.jobs.submit("call", call("w.look", x="marker"), "ada"))
    db = sqlite3.connect(world.root / ".toolgate" / "jobs.db")
    stored = "\n".join(db.iterdump())
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
    assert '"x":"marker"' in stored
    assert '"saw marker"' in stored
    assert "gASV" not in stored  # how every pickle begins in base64


async def test_a_job_that_somebody_else_wrote_into_the_database_is_not_run(world: World) -> None:
    async with opened(world, None) as gate:
        ident = await gate.jobs.submit("call", call("w.append", x="mine"), "ada")
        db = sqlite3.connect(world.root / ".toolgate" / "jobs.db", isolation_level=None)
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        changed = 0
        for table in tables:
            for (column,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall():
                sql = f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE typeof("{column}") = \'text\''
                changed += db.execute(f'{sql} AND instr("{column}", ?)', ("mine", "theirs", "mine")).rowcount
        db.close()
        assert changed
        async with gate.jobs.running():
            job = await in_state(gate, ident, "failed")
        assert job.error is not None
        assert "not put there by a gate" in job.error["message"]
        assert world.did() == []


async def test_two_processes_may_submit_the_first_job_at_once_and_a_half_made_file_is_no_hindrance(
    world: World, database: str | None
) -> None:
    state = world.root / ".toolgate"
    state.mkdir()
    (state / "jobs.new").write_text("somebody died here")
    async with opened(world, database) as first, opened(world, database) as second:
        look = call("w.look", x="a")
        made = await asyncio.gather(
            *(gate.jobs.submit("call", look, "ada") for gate in (first, second, first))
        )
        assert {job.id for job in await second.jobs.find()} == set(made)


async def test_old_jobs_are_forgotten_and_open_ones_stay(world: World) -> None:
    async with opened(world, None) as gate:
        async with gate.jobs.running():
            old = await gate.jobs.submit("call", call("w.look", x="old"), "ada")
            await gate.jobs.wait(old)
        still = await gate.jobs.submit("call", call("w.look", x="open"), "ada")
        assert await asyncio.to_thread(gate.jobs._store.sweep, 1) == 0
        assert await asyncio.to_thread(gate.jobs._store.sweep, -1) == 1
        assert [job.id for job in await gate.jobs.find()] == [still]


async def test_a_runner_that_stops_leaves_what_it_could_not_end_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.features.jobs.runner.GRACE_S", 0.1)
    async with opened(world, None) as gate:
        wrote = await gate.jobs.submit("call", call("w.append", x="w", hold="yes"), "ada")
        read = await gate.jobs.submit("call", call("w.look", x="r", hold="yes"), "ada")
        asked = await gate.jobs.submit("call", call("w.ask", x="q"), "ada")
        async with gate.jobs.running():
            await until(lambda: _stands(world, "w"))
            await until(lambda: _stands(world, "r"))
            question = (await in_state(gate, asked, "waiting")).question
        assert not (await gate.jobs.get(wrote)).ended
        world.go.touch()
        await gate.answer(question, "approve")  # while nobody runs jobs
        async with gate.jobs.running():
            assert (await in_state(gate, wrote, "unknown")).error is not None
            assert (await in_state(gate, read, "done")).result == "saw r"
            assert (await in_state(gate, asked, "done")).result == "did q"
    assert sorted(world.did()) == ["q", "w"]


async def test_a_damaged_file_of_jobs_is_said_and_the_gate_works_on(world: World) -> None:
    async with opened(world, None) as gate:
        (world.root / ".toolgate" / "jobs.db").write_bytes(
            b"this is no database at all, but it is long enough" * 40
        )
        with pytest.raises(Unavailable, match=r"jobs\.db"):
            await gate.jobs.find()
        assert (await gate.call("w.look", {"x": "a"})).ok


async def test_a_ledger_in_memory_has_no_jobs_and_says_so(world: World) -> None:
    async with toolgate.open(world.root, CONFIG, "memory", tools=world.tools()) as gate:
        refused = await gate.call("jobs.list")
        assert refused.error is not None
        assert refused.error.code == "unavailable"


def test_a_gate_without_jobs_imports_nothing_of_the_engine(tmp_path: Path) -> None:
    program = """
import asyncio, sys, toolgate
async def main():
    async with toolgate.open(sys.argv[1], {"version": 1, "default_persona": "a", "personas": {"a": {"phase": "observe"}}}) as gate:
        assert (await gate.call("jobs.list")).data == []
    assert not {"dbos", "sqlalchemy", "psycopg"} & set(sys.modules)
asyncio.run(main())
"""
    environment = os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60, env=environment)


async def test_without_the_package_jobs_say_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.features.jobs.place.find_spec", lambda name: None)
    async with opened(world, None) as gate:
        with pytest.raises(SetupError, match="dbos"):
            await gate.jobs.submit("call", call("w.look", x="a"), "ada")


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attempts": 101}, {"delay_s": 0}, {"factor": 0.5}, {"most_s": 1}]
)
def test_a_retry_that_cannot_be_kept_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        Retry(**wrong)


def test_delays_grow_up_to_a_bound() -> None:
    patient = Retry(attempts=6, delay_s=1, factor=3, most_s=20)
    assert [patient.delay(attempt) for attempt in range(1, 6)] == [1, 3, 9, 20, 20]


async def test_a_full_jobs_db_forgets_the_oldest_that_ended_and_then_takes_no_more(world: World) -> None:
    large = "x" * 100_000
    async with opened(world, None, jobs={"max_bytes": 1 << 20}) as gate:
        ended = [await gate.jobs.submit("call", call("w.ask", x=large), "ada") for _ in range(3)]
        for ident in ended:
            await gate.jobs.cancel(ident)
        waiting: list[str] = []

        async def fill() -> None:
            for _ in range(12):
                waiting.append(await gate.jobs.submit("call", call("w.ask", x=large), "ada"))

        with pytest.raises(TooLarge, match=r"jobs that have not ended take [\d,]+ bytes") as refused:
            await fill()
        assert "jobs.max_bytes" in str(refused.value.data)
        assert [job.id for job in await gate.jobs.find()] == waiting[::-1]
        used, most = await gate.jobs.room()
        assert used <= most == 1 << 20
        await gate.jobs.cancel(waiting[0])
        taken = await gate.jobs.submit("call", call("w.ask", x=large), "ada")
        assert {job.id for job in await gate.jobs.find()} == {*waiting[1:], taken}
