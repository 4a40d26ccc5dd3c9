"""The process that runs jobs: DBOS is started here and nowhere else, and nothing of it listens or phones home.

DBOS lives on threads and an event loop of its own; calls are made on the gate's loop. One DBOS fits into a process, and
one runner into a project.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolgate.core.errors import SetupError
from toolgate.features.jobs.attempt import Outcome, Slots
from toolgate.features.jobs.config import JobsSpec
from toolgate.features.jobs.gate_port import JobsPort
from toolgate.features.jobs.job import JobKind, Spec
from toolgate.features.jobs.place import SCHEMA
from toolgate.features.jobs.store import APP, VERSION, JobStore

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
