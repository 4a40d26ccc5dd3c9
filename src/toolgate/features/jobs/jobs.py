"""Jobs as programs hold them (`gate.jobs`): submit, read, cancel, retry, schedule, and run; and what they can do with the
gate."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.call import new_id
from toolgate.core.context import Trail
from toolgate.core.errors import Conflict, InvalidArgs, NotAllowed, NotFound, Unavailable
from toolgate.core.names import HUMAN
from toolgate.core.result import Result
from toolgate.feature import FeatureContext
from toolgate.features.jobs.config import JobsSpec
from toolgate.features.jobs.job import BUILT_IN, Job, JobKind, Retry, Schedule, Spec
from toolgate.features.jobs.place import JobsPlace, from_engine, lock_of, need_engine, taken
from toolgate.features.jobs.store import JobStore
from toolgate.gate.reconcile import reconcile_dead
from toolgate.gate.stored import Claimed, claim_of
from toolgate.storage.sqlite import SqliteBackend

if TYPE_CHECKING:
    from toolgate.facade import Gate

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
STAND_BY_S = 1.0
WATCH_S = 0.1
T = TypeVar("T")
Progress = Callable[[float, str], None]
log = logging.getLogger("toolgate.jobs")


class JobsPort:
    """What jobs can do with a gate, which is what their persona may do. They have no other way to do anything."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def call(
        self, tool: str, args: Mapping[str, Any], *, persona: str, key: str, conversation: str, job: str,
        reason: str, progress: Progress,
    ) -> Result:  # fmt: skip
        """One call through the gate, handed back as `pending` where it asks."""
        trail = Trail(conversation=conversation, transaction=job, reason=reason)
        return await self._gate.pipeline.call(
            tool, args, persona, key=key, trail=trail, wait=False, progress=progress, own_key=True
        )

    async def answered(self, question: str) -> None:
        """Until the question is approved; a refusal and an expiry raise."""
        await self._gate.services.desk.wait(question)

    async def claim(self, persona: str, key: str) -> Claimed | None:
        """What became of an earlier call with this key."""
        return await claim_of(self._gate.services.ledger, persona, key)

    async def reconcile(self) -> None:
        """Settle what dead processes left running."""
        await reconcile_dead(self._gate.services)

    def seal(self, text: str) -> str:
        """A keyed hash: only a gate of this project can have made it."""
        key = self._gate.services.ledger.keys.derived("jobs")
        return hmac.new(key, text.encode(), "sha256").hexdigest()

    async def check(self, tool: str, args: Mapping[str, Any], persona: str) -> None:
        """Refuse now what could never run: an unknown tool or persona, wrong arguments, secrets in them."""
        policy = self._gate.policy
        if persona == HUMAN:
            raise NotAllowed("a job runs when nobody is there, so it is never the human's", "name a persona")
        if persona not in policy.personas:
            raise NotAllowed(f"there is no persona {persona[:80]!r}", f"the personas are: {policy.listed()}")
        facts = await self._gate.facts(tool, args, persona)
        if self._gate.services.redactor.mask(facts.tool, facts.args) is not facts.args:
            raise InvalidArgs(
                f"the arguments of {facts.tool.name} hold a secret, and a job's arguments are kept as they are",
                "hand over secrets by name, or make the call by itself",
            )


class Jobs:
    """Costs nothing until it is used: the engine is imported with the first job."""

    def __init__(self, place: JobsPlace | None, gate: JobsPort, spec: JobsSpec | None = None) -> None:
        self._place, self._gate, self._spec = place, gate, spec or JobsSpec()
        self._made: JobStore | None = None
        self.kinds: dict[str, JobKind] = dict(BUILT_IN)
        """What a job can be; a plugin may add its own."""

    @property
    def _store(self) -> JobStore:
        if self._place is None:
            raise Unavailable(
                "jobs outlive a process, and this ledger does not", "open the gate on a database"
            )
        self._made = self._made or JobStore(self._place, self._gate.seal, self._spec.max_bytes)
        return self._made

    async def close(self) -> None:
        if self._made is not None:
            await asyncio.to_thread(self._made.close)

    # --- for whoever wants something done -----------------------------------------------------------------

    async def submit(
        self, kind: str, args: Mapping[str, Any], persona: str, conversation: str = "", *, reason: str = "",
        retry: Retry | None = None, timeout_s: float | None = None, ident: str = "",
    ) -> str:  # fmt: skip
        """Put a job on record; a runner takes it up. What could never run is refused now. An `ident` of the caller's
        is there at most once."""
        spec = await self._checked(
            Spec(kind, args, persona, conversation, reason, retry or Retry(), timeout_s)
        )
        name = ident or new_id("j")
        await self._in_thread(lambda store: store.submit(name, spec))
        return name

    async def _checked(self, spec: Spec) -> Spec:
        kind = self.kinds.get(spec.kind)
        if kind is None:
            raise InvalidArgs(f"{spec.kind!r} is not a kind of job", f"use one of: {', '.join(self.kinds)}")
        if spec.timeout_s is not None and not 0 < spec.timeout_s <= 31_536_000:
            raise InvalidArgs(
                f"{spec.timeout_s:g} s is no time for a job", "give it more than 0 s and up to a year"
            )
        for tool, args in kind.known(spec.args):
            await self._gate.check(tool, args, spec.persona)
        return spec

    async def find(self, persona: str = "", limit: int = 50, open_only: bool = False) -> list[Job]:
        """Newest first."""
        return await self._in_thread(
            lambda store: store.jobs(limit=limit, persona=persona, open_only=open_only)
        )

    async def get(self, ident: str, persona: str = "") -> Job:
        """With a persona, only its own."""
        job = await self._in_thread(lambda store: store.job(ident))
        if persona not in ("", job.spec.persona):
            raise NotFound(f"there is no job {ident[:80]}", "`jobs.list` lists yours")
        return job

    async def wait(self, ident: str) -> Job:
        """Until it has ended."""
        while True:
            job = await self.get(ident)
            if job.ended:
                return job
            await asyncio.sleep(WATCH_S)

    async def room(self) -> tuple[int, int]:
        """Bytes of jobs.db in use, and how many there may be; nothing is measured on PostgreSQL."""
        return await self._in_thread(lambda store: (store.used(), store.max_bytes))

    async def cancel(self, ident: str) -> Job:
        """The call under way is cancelled too, within about a second; `outcome` says how the gate settled it."""
        await self._in_thread(lambda store: store.cancel(ident))
        return await self.get(ident)

    async def retry(self, ident: str) -> str:
        """The same once more, as a new job with the keys of the old one: what happened is not done again."""
        job = await self.get(ident)
        if not job.ended or job.state == "done":
            raise Conflict(
                f"{ident} is {job.state}", "only what failed, was cancelled or is unknown is tried again"
            )
        root = job.spec.root or job.id
        for number in range(1, 1 + sum(1 for _ in self._known(job.spec))):
            claim = await self._gate.claim(job.spec.persona, f"{root}:{number}")
            if claim is not None and claim.state in ("unknown", "started"):
                raise Conflict(
                    f"whether the call {claim.call} of {ident} happened is unknown",
                    f"look, then `toolgate ledger resolve {claim.call} happened|not`; then retry",
                )
        again = new_id("j")
        spec = await self._checked(replace(job.spec, root=root))
        await self._in_thread(lambda store: store.submit(again, spec))
        return again

    def _known(self, spec: Spec) -> Any:
        kind = self.kinds.get(spec.kind)
        return kind.known(spec.args) if kind is not None else ()

    # --- schedules ----------------------------------------------------------------------------------------

    async def schedule(
        self, name: str, cron: str, kind: str, args: Mapping[str, Any], persona: str, conversation: str = "", *,
        reason: str = "", retry: Retry | None = None, timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        """Submit a job at the times of a cron expression (UTC; six fields have seconds first)."""
        if not NAME.fullmatch(name):
            raise InvalidArgs(f"{name[:80]!r} is not a schedule's name", "use small letters, digits, - and _")
        spec = await self._checked(
            Spec(kind, args, persona, conversation, reason, retry or Retry(), timeout_s)
        )
        await self._in_thread(lambda store: store.schedule(name, cron, spec))

    async def schedules(self) -> list[Schedule]:
        return await self._in_thread(lambda store: store.schedules())

    async def unschedule(self, name: str) -> None:
        await self._in_thread(lambda store: store.unschedule(name))

    # --- running ------------------------------------------------------------------------------------------

    async def attended(self) -> bool:
        """Whether a process runs this project's jobs."""
        return await lock_of(self._store.place).held()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run jobs in this process meanwhile. What comes is done when another must be let to run them."""
        need_engine()
        lock = lock_of(self._store.place)
        if not await taken(lock):
            raise Conflict(
                "another process runs the jobs of this project", "one is enough; `toolgate jobs` shows them"
            )
        from toolgate.features.jobs.runner import Runner

        runner = Runner(self._store, self._gate, self.kinds, self._spec)
        lost = asyncio.create_task(lock.lost())
        try:
            await runner.start()
            try:
                yield lost
            finally:
                await runner.stop()
        finally:
            lost.cancel()
            await asyncio.gather(lost, return_exceptions=True)
            await lock.release()

    async def stand_by(self) -> None:
        """Run jobs whenever nobody else does, until cancelled."""
        while True:
            try:
                async with self.running() as lost:
                    log.info("this process runs the jobs")
                    await asyncio.wait((lost,))
                    log.warning("the lock of the jobs was lost; another process may run them now")
            except Conflict:
                pass  # another process does
            except Exception:
                log.exception("jobs cannot be run here; they are tried again")
            await asyncio.sleep(STAND_BY_S)

    async def _in_thread(self, ask: Callable[[JobStore], T]) -> T:
        store = self._store
        try:
            return await asyncio.to_thread(ask, store)
        except Exception as error:
            raise from_engine(error, store.place) from error


def open_jobs(context: FeatureContext) -> Jobs:
    """In the same PostgreSQL as the ledger, or beside its file; nowhere, if it is kept in memory."""
    gate, spec = context.gate, context.config
    backend = gate.services.ledger.backend
    dsn = getattr(backend, "dsn", "")
    place = JobsPlace(dsn=dsn) if dsn else None
    if isinstance(backend, SqliteBackend):
        place = JobsPlace(backend.path.parent)
    jobs = Jobs(place, JobsPort(gate), spec)
    context.stack.push_async_callback(jobs.close)
    return jobs


def run(context: FeatureContext) -> Coroutine[Any, Any, None] | None:
    """Beside the server, where the owner wants it. Without the engine the server does not start."""
    if not context.config.run:
        return None
    need_engine()
    return context.gate.jobs.stand_by()
