"""The process that runs jobs: DBOS is started here and nowhere else, and nothing of it listens or phones home.

DBOS lives on threads and an event loop of its own; calls are made on the gate's loop. One DBOS fits into a process, and
one runner into a project. An attempt at a call is made at least once by DBOS, at most once by the gate's key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolgate.core.display import encodable
from toolgate.core.errors import CallError, Code, SetupError
from toolgate.core.result import Result
from toolgate.features.jobs.config import JobsSpec
from toolgate.features.jobs.job import JobKind, Spec
from toolgate.features.jobs.jobs import JobsPort
from toolgate.features.jobs.place import SCHEMA
from toolgate.features.jobs.store import APP, VERSION, JobStore
from toolgate.gate.stored import Claimed

EXECUTOR = "toolgate-runner"
"""The same for every runner of a project, so that the next one finds what the last one left."""
LISTEN_S = 0.1
"""Nobody sends our workflows messages, so nothing is asked; but whoever stops waits for it."""
GRACE_S = 5.0
SWEEP_S = 3600.0
FORGED = {
    "code": "unavailable",
    "message": "this job was not put there by a gate of this project, or was changed since",
    "fix": "submit it again; and find out who writes to this database",
}

log = logging.getLogger("toolgate.jobs")


class Runner:
    def __init__(self, store: JobStore, gate: JobsPort, kinds: Mapping[str, JobKind], spec: JobsSpec) -> None:
        self._store, self._gate, self._kinds = store, gate, kinds
        self._keep_days = spec.keep_days
        self._slots = Slots(spec.concurrency)
        self._loop = asyncio.get_running_loop()
        self._working: set[asyncio.Task[Any]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Take up what a dead runner left, and then what is submitted. The project's lock must be ours."""
        await self._gate.reconcile()
        launching = asyncio.ensure_future(asyncio.to_thread(self._launch))
        try:
            await asyncio.shield(launching)
        except asyncio.CancelledError:  # a thread cannot be stopped: what it started is ended
            await asyncio.wait((launching,))
            await asyncio.to_thread(self._end)
            raise
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Calls under way get a moment to end; what does not is settled by the gate and taken up by the next runner."""
        self._stopping = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._slots.inside:
            await asyncio.wait(set(self._slots.inside), timeout=GRACE_S)
        await asyncio.to_thread(self._end)
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _launch(self) -> None:
        import dbos._dbos
        from dbos import DBOS, DBOSPortableJSONSerializer
        from dbos._utils import GlobalParams

        self._store.make()
        if dbos._dbos._dbos_global_instance is not None:
            raise SetupError(
                "this process runs DBOS already, and only one fits into a process",
                "run `toolgate jobs run` by itself",
            )
        if GlobalParams.dbos_cloud:
            raise SetupError("DBOS__CLOUD is set, which would open DBOS to its cloud", "unset it")
        from toolgate.features.jobs import workflow

        DBOS(
            config={
                "name": APP, "system_database_engine": self._store.engine(), "serializer": DBOSPortableJSONSerializer(),
                "dbos_system_schema": SCHEMA, "application_version": VERSION, "executor_id": EXECUTOR,
                "notification_listener_polling_interval_sec": LISTEN_S, "scheduler_polling_interval_sec": 1.0,
                "enable_otlp": False, "log_level": "WARNING", "run_migrations": False,
            }
        )  # fmt: skip
        workflow.carrier[:] = [self._carry]
        try:
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            raise

    def _end(self) -> None:
        from dbos import DBOS

        from toolgate.features.jobs import workflow

        DBOS.destroy()
        workflow.carrier.clear()

    async def _carry(self, ident: str, spec: dict[str, Any]) -> dict[str, Any]:
        """On DBOS's loop."""
        from toolgate.features.jobs.workflow import JobRun

        async def tell(news: Mapping[str, Any]) -> None:
            await asyncio.to_thread(self._store.tell, ident, news)

        if not self._store.is_ours(ident, spec):
            log.error("the job %s was not put there by a gate of this project; it is not run", ident)
            return {"state": "failed", "error": FORGED}
        told = Spec.read(spec)
        course = JobRun(ident, told, self._gate, tell, self._slots, self._bridge)
        ended = await course.run(self._kinds.get(told.kind))
        await tell(
            {"end": ended["state"], "call": ended.get("call", "")}
        )  # so that a list need not load results
        return ended

    async def _bridge(self, make: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """From DBOS's loop to the gate's and back."""
        if self._stopping:
            await asyncio.Event().wait()  # until DBOS ends; the next runner begins it

        async def work() -> Outcome:
            task = asyncio.current_task()
            assert task is not None
            self._working.add(task)
            try:
                return await make()
            finally:
                self._working.discard(task)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def _sweep(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._store.sweep, self._keep_days)
            except Exception:
                log.exception("old jobs could not be forgotten")
            await asyncio.sleep(SWEEP_S)


# One attempt at one call of a job, on the event loop of the gate. A call that asks becomes a job that waits, and goes on
# when it is answered.

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
