"""Jobs as ways round the gate: by another's key, in the background, later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolgate.features.programs import programs
from toolgate.gate.reconcile import what_happened
from toolgate.storage.executions import Executions

from .gates_to_pass import opened, started


async def test_nobody_has_a_job_pass_for_done_by_using_its_key_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    async with opened(tmp_path) as gate:
        job = await gate.jobs.submit("call", {"tool": "code.list", "args": {}}, "builder")
        for key in (f"{job}:1", f"{job}:1/follow", "sched-nightly-2026-01-01T00:00:00+00:00:1"):
            taken = await gate.call("code.read", {"path": "a.txt"}, key=key)
            assert taken.error is not None
            assert taken.error.code == "invalid_args"
        async with gate.jobs.running():
            ended = await asyncio.wait_for(gate.jobs.wait(job), 20)
        assert (ended.state, ended.error) == ("done", None)
        assert ended.result is not None
        assert (await started(gate, ended.call)).tool == "code.list"


async def test_a_program_that_was_handed_to_a_job_is_never_said_not_to_run(tmp_path: Path) -> None:
    """Killed between handing it over and saying so, with a key, it would be handed over twice."""
    async with opened(tmp_path) as gate:
        tool = gate.services.registry.resolve("exec.python")
        for more in ({}, {"network": ["example.com"]}):
            handed = await gate.call("exec.python", {"code": "output(1)", "background": True} | more)
            assert handed.ok, handed.error
            row = await started(gate, handed.meta.call_id)
            outcome, how = await what_happened(gate.services, tool, row)
            assert (outcome, how) == ("happened", f"it was handed to the job {handed.data['job_id']}")


@pytest.mark.parametrize("more", [{}, {"network": ["example.com"], "secrets": ["TOKEN"]}])
async def test_what_could_not_be_handed_to_a_job_has_failed_and_is_not_unknown(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    async with opened(tmp_path) as gate:
        args = {"code": "output(1)", "background": True} | more
        nobody = await gate.call("exec.python", args, persona="human")
        assert nobody.error is not None
        assert nobody.error.code == "not_allowed"
        assert "unknown" not in [row.kind for row in await gate.events()]


async def test_a_persona_can_fill_neither_the_queue_nor_the_disk_with_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MOST_OPEN_JOBS", 2)
    async with opened(tmp_path) as gate:
        args = {"code": "output(1)", "background": True}
        codes = [
            result.error.code if result.error else "ok"
            for result in [await gate.call("exec.python", args) for _ in range(3)]
        ]
        assert codes == ["ok", "ok", "rate_limited"]
        assert (await gate.call("exec.python", args, persona="other")).ok
        assert len(await gate.jobs.find("builder")) == 2


async def test_a_job_is_judged_by_what_holds_when_it_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        handed = await gate.call("exec.python", {"code": "output(1)", "background": True})
        await gate.pause("builder")
        async with gate.jobs.running():
            job = await asyncio.wait_for(gate.jobs.wait(handed.data["job_id"]), 20)
        assert job.state == "failed"
        assert job.error is not None
        assert job.error["code"] == "not_allowed"
        assert await gate.traces.find(Executions()) == []


@pytest.mark.parametrize("tool", ["jobs.status", "code.status"])
async def test_what_a_persona_runs_does_not_exist_for_others(tmp_path: Path, tool: str) -> None:
    async with opened(tmp_path) as gate:
        args = {"code": "print('mine')", "background": True}
        handed = await gate.call("exec.python", args)
        ran = await gate.call("exec.python", {"code": "print('mine')"})
        for ident in (handed.data["job_id"], ran.meta.call_id):
            named = {"job": ident} if tool == "jobs.status" else {"job_id": ident}
            seen = await gate.call(tool, named, persona="other")
            assert seen.error is not None
            assert seen.error.code == "not_found"
            assert "mine" not in seen.error.message
