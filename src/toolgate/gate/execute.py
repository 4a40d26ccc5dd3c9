"""Stage 8: the tool runs, with a time limit. Whatever comes of it becomes an Outcome; nothing is raised past here.

A read may be served from the cache instead, and what it gave is kept there with what proves it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolgate.core.effects import FILE_WORDS
from toolgate.core.errors import CallError, Cancelled, Code, Conflict, Failed, TimedOut, UnknownOutcome
from toolgate.core.evidence import Evidence, gather, spoil
from toolgate.core.finding import recorded
from toolgate.core.records import dataclass
from toolgate.gate.deadline import Deadline, Late, within
from toolgate.gate.flow import (
    Broke,
    Done,
    Flow,
    Lost,
    Outcome,
    Services,
    arguments,
    in_thread,
    invoke,
    tell,
    with_context,
)
from toolgate.gate.plan import holder
from toolgate.gate.reconcile import what_happened

if TYPE_CHECKING:
    from toolgate.core.change import Change
    from toolgate.gate.cache import Key

log = logging.getLogger("toolgate.gate")
GRACE = 10.0
"""How long a file change that is under way is waited for after its time is up."""


async def execute(services: Services, flow: Flow) -> None:
    tool = flow.tool
    assert tool is not None
    spoil()  # within another call: what this one reads is no evidence there
    seconds = services.timeouts.of(tool)
    serving = None
    if tool.cache_s and not flow.effectful and not services.cache.off:
        serving = Serving.of(services, flow)
    flow.begun_ns = time.perf_counter_ns()  # what came before may have been a human reading
    if serving is not None and await serving.served(seconds):
        return
    flow.running = True
    running: asyncio.Future[object] | None = None
    try:
        if serving is None:
            running, work = _work(services, flow)
            value = await within(seconds, work)
        else:
            with serving.gathering():
                running, work = _work(services, flow)
                value = await within(seconds, work)
    except Late:
        late = TimedOut(f"{tool.name} did not finish in {seconds:g} s", "ask for less, or allow more time")
        flow.outcome = await _settle_doubt(services, flow, late, running)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            flow.cancelled = True
            cancelled = Cancelled(f"{tool.name} was cancelled", "call it again if it is still wanted")
            flow.outcome = await asyncio.shield(_settle_doubt(services, flow, cancelled, running))
        else:  # nobody cancelled the caller: the tool awaited something that was
            flow.outcome = await _raised(services, flow, RuntimeError("something it awaited was cancelled"))
    except Exception as error:
        flow.outcome = await _raised(services, flow, error)
    else:
        flow.outcome = Done(_dump(flow, value))
        if serving is not None:
            serving.keep(flow.outcome.value)
    if flow.effectful:
        services.cache.forget_unproven()
    change = flow.call.change if flow.call is not None else None
    if change is not None:
        await _let_go(services, flow, change)


async def _let_go(services: Services, flow: Flow, change: Change) -> None:
    """Images are kept for undo, and where there is nothing to undo, or no room for it, only while the call needs them."""
    if services.files is None:
        return
    if isinstance(flow.outcome, Broke) or (change.unkept and isinstance(flow.outcome, Done)):
        try:
            await services.files.release(flow.call_id)
        except (
            CallError
        ) as problem:  # it has run and is settled all the same; too much is kept, not too little
            log.warning("what %s kept could not be let go: %s", flow.call_id, problem.message)


def _work(services: Services, flow: Flow) -> tuple[asyncio.Future[object] | None, Awaitable[object]]:
    """What is to be awaited, and what runs beside it: a file change or a blocking function goes on in its thread
    whatever we do, never cancelled midway."""
    tool, call, args = flow.tool, flow.call, flow.args
    assert tool is not None
    assert call is not None
    assert args is not None
    if call.change is not None:
        running: asyncio.Future[object] = asyncio.ensure_future(_apply(services, flow, call.change))
    elif tool.blocks:
        running = in_thread(flow, tool.run, **arguments(args))
    else:
        return None, tool.run(**with_context(flow, tool.run, arguments(args)))
    return running, _told(running)


async def _told(running: asyncio.Future[object]) -> object:
    """What came of it, while nothing that happens to us stops it."""
    value = await asyncio.shield(running)
    return await value if inspect.isawaitable(value) else value


async def _apply(services: Services, flow: Flow, change: Change) -> object:
    assert flow.tool is not None
    if services.files is not None:
        try:
            await services.files.keep(change, holder(flow))
        except CallError as error:  # no image, no change: the tool has not been called
            raise type(error)(error.message, error.fix, error.data, certain=True) from error
    return await invoke(flow, flow.tool.run, change)


def _dump(flow: Flow, value: object) -> object:
    assert flow.tool is not None
    data = flow.tool.dump(value)
    change = flow.call.change if flow.call is not None else None
    if change is not None and isinstance(data, dict):
        data = data | {"findings": recorded(change.findings)}
        if change.unkept:
            data["warning"] = change.unkept
    return data


async def _raised(services: Services, flow: Flow, error: Exception) -> Outcome:
    tool = flow.tool
    assert tool is not None
    if isinstance(error, UnknownOutcome):
        return Lost(error.code, error.message, error.fix)
    if not isinstance(error, CallError):
        tell(flow, services, "%s raised", tool.name)
        error = Failed(
            f"{tool.name} failed: {type(error).__name__}: {error}",
            "check the arguments; the trace is in the log",
        )
    if error.certain:
        return Broke(error.code, error.message, error.fix, error.data)
    planned = flow.call is not None and flow.call.change is not None
    if planned and isinstance(error, Conflict):
        return Broke(error.code, error.message, error.fix)  # the Files port has written nothing, so no doubt
    if flow.effectful and (planned or tool.reconcile is not None):
        return await _settle_doubt(services, flow, error)
    return Broke(error.code, error.message, error.fix)


async def _settle_doubt(
    services: Services, flow: Flow, error: CallError, running: asyncio.Future[object] | None = None
) -> Outcome:
    """A read that stopped simply failed; an effect that stopped is unknown unless it can be proven."""
    if running is not None and flow.effectful:
        await asyncio.wait((running,), timeout=GRACE)
        if not running.done():
            return _lost(flow, error, "it is still running")
        return await _finished(services, flow, running)
    if running is not None:
        running.add_done_callback(_heard)
    if not flow.effectful:
        return Broke(error.code, error.message, error.fix)
    assert flow.started is not None
    happened, how = await what_happened(services, flow.tool, flow.started, flow.args)
    if happened == "not":
        return Broke(error.code, f"{error.message} ({how})" if how else error.message, error.fix)
    if happened == "happened":
        return Done({"reconciled": how}, reconciled=how)
    return _lost(flow, error, how)


async def _finished(services: Services, flow: Flow, running: asyncio.Future[object]) -> Outcome:
    """It came to its end after all, only late: what it returned or raised is what happened."""
    try:
        value = running.result()
        return Done(_dump(flow, await value if inspect.isawaitable(value) else value))
    except Exception as error:
        return await _raised(services, flow, error)


def _lost(flow: Flow, error: CallError, how: str) -> Lost:
    return Lost(
        Code.UNKNOWN_OUTCOME,
        f"{error.message}; whether it took effect is unknown ({how})",
        f"look, then `toolgate ledger resolve {flow.call_id} happened|not`; it is not run again by itself",
    )


def _heard(running: asyncio.Future[object]) -> None:
    """Take note of what a stopped call raised, so that nothing complains about an unheard exception."""
    if not running.cancelled():
        running.exception()


@dataclass(slots=True)
class Serving:
    """One read that may be served from the cache, or kept for the next one."""

    services: Services
    flow: Flow
    key: Key
    evidence: Evidence | None = None

    @classmethod
    def of(cls, services: Services, flow: Flow) -> Serving:
        assert flow.call is not None
        assert flow.rules is not None
        # With the policy in the key, what was read under other rules is never looked at again.
        key = (flow.call.digest, flow.rules.fingerprint, services.redactor.version)
        return cls(services, flow, key)

    async def served(self, seconds: float) -> bool:
        """Proving takes its time too, and has no more of it than the tool."""
        try:
            with Deadline(seconds):
                kept = await self.services.cache.get(self.key)
        except Late:
            return False
        if kept is None or _standing(self.services) != self.key[1:]:
            return False
        import orjson

        self.flow.outcome = Done(orjson.loads(kept), cached=True)
        return True

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Around the run: what it reads is noted."""
        assert self.flow.tool is not None
        again = self.services.cache.again(self.key, self.flow.tool.cache_s)
        with gather(again) as self.evidence:
            yield

    def keep(self, value: object) -> None:
        """As text: whoever gets it may do with it what they like."""
        tool, evidence = self.flow.tool, self.evidence
        if tool is None or evidence is None:
            return
        if evidence.spoiled:
            if evidence.again:
                self.services.cache.in_vain(self.key)
            return
        if not all(proof.stood() for proof in evidence.proofs):
            return
        facts = self.flow.facts
        if facts is not None and not evidence.proofs and not FILE_WORDS.isdisjoint(facts.effects.reads):
            return  # from files, and nothing says which
        if _standing(self.services) != self.key[1:]:
            return  # read under the old rules or the new ones: nobody knows
        import orjson

        try:
            self.services.cache.put(self.key, orjson.dumps(value), tool.cache_s, evidence.proofs)
        except orjson.JSONEncodeError:
            log.debug("a result is not cached, because JSON cannot hold it")


def _standing(services: Services) -> tuple[str, int]:
    return services.rules().fingerprint, services.redactor.version
