"""One attempt at one call of a job: at least once by the job's engine, at most once by the gate's key.

Runs on the event loop of the gate. A call that asks becomes a job that waits, and goes on when it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolgate.core.display import encodable
from toolgate.core.errors import CallError, Code
from toolgate.core.result import Result
from toolgate.features.jobs.gate_port import JobsPort
from toolgate.features.jobs.job import Spec
from toolgate.gate.stored import Claimed

REPORT_S = 0.3
SETTLING_S = 1.0
MESSAGE = 500

Outcome = dict[str, Any]
"""`ok`, `call`, `data` or `error`: JSON, because the engine stores it."""
Tell = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Puts on record how the job stands: state, question, progress."""


@dataclass(frozen=True, slots=True)
class JobStep:
    """A call of a job, by its number."""

    job: str
    spec: Spec
    number: int
    tool: str
    args: Mapping[str, Any]
    attempt: int = 1
    deadline: float | None = None
    """In the loop's time."""

    @property
    def key(self) -> str:
        return f"{self.spec.root or self.job}:{self.number}"


class Slots:
    """So many calls at once. Whoever waits for a human is not inside."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self.inside: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> None:
        await self._free.acquire()
        task = asyncio.current_task()
        assert task is not None
        self.inside.add(task)

    async def __aexit__(self, *error: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.inside.discard(task)
        self._free.release()


class CallAttempt:
    def __init__(self, gate: JobsPort, step: JobStep, tell: Tell, slots: Slots) -> None:
        self._gate, self._step, self._tell, self._slots = gate, step, tell, slots
        self._news: tuple[float, str] | None = None

    async def make(self) -> Outcome:
        """Never twice what may have happened; a cancellation is settled by the gate before it goes on."""
        try:
            async with asyncio.timeout_at(self._step.deadline):
                return await self._make()
        except TimeoutError:
            return await self._late()
        except CallError as error:  # the ledger could not be asked
            return {"ok": False, "call": "", "error": problem(error)}
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupted())
            raise

    async def _make(self) -> Outcome:
        earlier = await self._earlier()
        if earlier is not None and earlier.state == "unknown":
            return unknown(earlier.call)
        happened = earlier is not None and earlier.state in ("committed", "happened")
        if earlier is not None and happened and not earlier.live:
            return _kept_no_longer(earlier)
        while True:
            result = await self._call()
            if earlier is not None and happened and not result.ok:
                return _kept_no_longer(earlier)  # its tool is defined otherwise by now
            if result.error is None or result.error.code is not Code.PENDING:
                return outcome_of(result)
            question = str(result.data["question"])
            await self._tell({"state": "waiting", "question": question})
            try:
                await self._gate.answered(question)
            except CallError as error:
                return {"ok": False, "call": result.meta.call_id, "error": problem(error)}

    async def _earlier(self) -> Claimed | None:
        """What this step did before the process that did it died. It must be dead before that is known."""
        while True:
            found = await self._gate.claim(self._step.spec.persona, self._step.key)
            if found is None or found.state != "started":
                return found
            if not found.live:
                return Claimed(found.call, "unknown", False)
            await self._gate.reconcile()
            await asyncio.sleep(SETTLING_S)

    async def _call(self) -> Result:
        step, spec = self._step, self._step.spec
        async with self._slots:
            await self._tell({"state": "running", "question": "", "attempt": step.attempt})
            reporting = asyncio.create_task(self._report())
            try:
                return await self._gate.call(
                    step.tool, step.args, persona=spec.persona, key=step.key, conversation=spec.conversation,
                    job=step.job, reason=spec.reason, progress=self._progress,
                )  # fmt: skip
            finally:
                reporting.cancel()
                with suppress(asyncio.CancelledError):
                    await reporting

    def _progress(self, fraction: float, message: str) -> None:
        """From any thread; only the newest counts."""
        self._news = (fraction, message)

    async def _report(self) -> None:
        """Not for every word: a tool may report thousands of times a second."""
        said = None
        while True:
            await asyncio.sleep(REPORT_S)
            news = self._news
            if news is not None and news != said:
                said = news
                await self._tell({"progress": min(1.0, max(0.0, float(news[0]))), "message": _line(news[1])})

    async def _late(self) -> Outcome:
        found = await self._gate.claim(self._step.spec.persona, self._step.key)
        if found is not None and found.state in ("unknown", "started"):
            return unknown(found.call)
        if found is not None and found.state in ("committed", "happened"):
            return {"ok": True, "call": found.call, "data": None, "note": "it happened as its time was up"}
        error = {"code": "timeout", "message": f"the job did not end in {self._step.spec.timeout_s:g} s"}
        return {"ok": False, "call": found.call if found else "", "final": True} | {
            "error": error | {"fix": "give it more time, or less to do"}
        }

    async def _interrupted(self) -> None:
        found = await self._gate.claim(self._step.spec.persona, self._step.key)
        if found is not None:
            await self._tell({"call": found.call, "outcome": found.state})


def outcome_of(result: Result) -> Outcome:
    if result.error is None:
        return {"ok": True, "call": result.meta.call_id, "data": result.data}
    error = {"code": result.error.code.value, "message": result.error.message, "fix": result.error.fix}
    wait = result.data.get("retry_after_s") if isinstance(result.data, dict) else None
    return {"ok": False, "call": result.meta.call_id, "error": error} | ({"wait_s": wait} if wait else {})


def unknown(call: str) -> Outcome:
    error = {
        "code": Code.UNKNOWN_OUTCOME.value,
        "message": f"whether the call {call} happened cannot be proven; it is never run again by itself",
        "fix": f"look, then `toolgate ledger resolve {call} happened|not`; then `toolgate jobs retry` goes on",
    }
    return {"ok": False, "call": call, "error": error}


def problem(error: CallError) -> dict[str, str]:
    return {"code": error.code.value, "message": error.message, "fix": error.fix}


def _kept_no_longer(earlier: Claimed) -> Outcome:
    return {
        "ok": True,
        "call": earlier.call,
        "data": None,
        "note": "it happened; its result is kept no longer",
    }


def _line(text: str) -> str:
    return encodable(str(text)).replace("\0", "\ufffd")[:MESSAGE]
