"""Workflow of a job: its kind's calls in order, each with its attempts. Runs inside a workflow, on DBOS's loop.

Every attempt is a step that DBOS stores when it has ended. A step that a crash cut short is made again; the gate's key
then gives back what the call gave, or says that nobody knows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from dbos import DBOS

from toolgate.core.errors import CallError
from toolgate.features.jobs.job import RETRIED, JobKind, Spec
from toolgate.features.jobs.jobs import JobsPort
from toolgate.features.jobs.runner import CallAttempt, JobStep, Outcome, Slots, Tell, problem
from toolgate.features.jobs.store import JOB, TICK


class JobStopped(Exception):
    """A call refused or failed for good."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome["error"]))
        self.outcome = outcome


Bridge = Callable[[Callable[[], Awaitable[Outcome]]], Awaitable[Outcome]]
"""Runs something on the gate's event loop; cancelled with whoever waits for it."""


class JobRun:
    def __init__(
        self, ident: str, spec: Spec, gate: JobsPort, tell: Tell, slots: Slots, bridge: Bridge
    ) -> None:
        self._ident, self._spec = ident, spec
        self._gate, self._tell, self._slots, self._bridge = gate, tell, slots, bridge
        self._calls = 0
        self._last = ""
        self._ends: float | None = None

    async def run(self, kind: JobKind | None) -> dict[str, Any]:
        if kind is None:
            error = {"code": "failed", "message": f"nobody here knows jobs of the kind {self._spec.kind!r}"}
            return {
                "state": "failed",
                "error": error | {"fix": "run it where the plugin that brings it is loaded"},
            }
        if self._spec.timeout_s is not None:
            self._ends = await DBOS.run_step_async({"name": "started"}, _now) + self._spec.timeout_s
        try:
            result = await kind.run(self, self._spec.args)
            return {"state": "done", "result": result, "call": self._last}
        except JobStopped as stop:
            code = stop.outcome["error"]["code"]
            state = "unknown" if code == "unknown_outcome" else "failed"
            return {"state": state, "error": stop.outcome["error"], "call": stop.outcome.get("call", "")}
        except CallError as error:  # arguments that the kind does not know
            return {"state": "failed", "error": problem(error)}

    async def call(self, tool: str, args: Mapping[str, Any]) -> Any:
        self._calls += 1
        number, retry = self._calls, self._spec.retry
        for attempt in range(1, retry.attempts + 1):
            outcome = await DBOS.run_step_async(
                {"name": f"call {number}", "preemptible": True}, self._attempt, number, tool, args, attempt
            )
            self._last = outcome["call"]
            if outcome["ok"]:
                return outcome["data"]
            if attempt == retry.attempts or not may_retry(outcome):
                raise JobStopped(outcome)
            delay = max(retry.delay(attempt), float(outcome.get("wait_s") or 0))
            if self._ends is not None and time.time() + delay >= self._ends:
                raise JobStopped(outcome)
            await DBOS.sleep_async(delay)
        raise AssertionError("unreachable")

    async def _attempt(self, number: int, tool: str, args: Mapping[str, Any], attempt: int) -> Outcome:
        async def make() -> Outcome:
            left = None if self._ends is None else self._ends - time.time()
            deadline = None if left is None else asyncio.get_running_loop().time() + left
            step = JobStep(self._ident, self._spec, number, tool, args, attempt, deadline)
            return await CallAttempt(self._gate, step, self._tell, self._slots).make()

        return await self._bridge(make)


def may_retry(outcome: Outcome) -> bool:
    return outcome["error"]["code"] in RETRIED and not outcome.get("final")


async def _now() -> float:
    return time.time()


# The two workflows that DBOS knows. Imported by the runner only, once in a process, because DBOS keeps one
# registry. Change what they do in a way that old records do not fit, and `store.VERSION` must change with
# it.

Carry = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
carrier: list[Carry] = []
"""The runner of this process, while there is one."""


@DBOS.workflow(name=JOB)
async def job(spec: dict[str, Any]) -> dict[str, Any]:
    return await _carry(spec)


@DBOS.workflow(name=TICK)
async def tick(at: datetime, spec: dict[str, Any]) -> dict[str, Any]:
    """A schedule's: its id has the time in it, so that each is there once whoever submits it."""
    return await _carry(spec)


async def _carry(spec: dict[str, Any]) -> dict[str, Any]:
    ident = DBOS.workflow_id
    assert ident is not None
    return await carrier[0](ident, spec)
