"""The pipeline. Read ORDER: that is the whole story."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from toolgate.core.call import new_id
from toolgate.core.context import NO_TRAIL, Trail
from toolgate.core.errors import CallError, Code, Failed, by_policy
from toolgate.core.result import Meta, Problem, Result
from toolgate.gate.authorize import authorize
from toolgate.gate.begin import begin
from toolgate.gate.consent import consent
from toolgate.gate.execute import execute
from toolgate.gate.flow import Broke, Flow, Lost, Outcome, Services, Stage, tell
from toolgate.gate.plan import plan
from toolgate.gate.reconcile import settle_gone
from toolgate.gate.redact import clean_error, clean_part, clean_progress, clean_trail, redact
from toolgate.gate.resolve import check_lengths, check_own, resolve
from toolgate.gate.scan import scan
from toolgate.gate.settle import Refusals, settle
from toolgate.gate.shape import shape
from toolgate.gate.validate import validate

if TYPE_CHECKING:
    from toolgate.core.caller import Caller
    from toolgate.core.rendering import Reader

ORDER: tuple[Stage, ...] = (
    resolve, validate, authorize, plan, scan, consent, begin, execute, redact, shape, settle,
)  # fmt: skip

_STOPS = frozenset({Code.UNKNOWN_TOOL, Code.DENIED, Code.EXPIRED, Code.PENDING})
"""What stops the rest of several calls in one request, as a refusal by policy does; an ordinary failure does not."""


class Pipeline:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.refusals = Refusals(services)
        services.unrecorded.adopt = partial(settle_gone, services)

    async def call(
        self, name: str, args: Mapping[str, Any], persona: str, *, key: str | None = None,
        trail: Trail | None = None, wait: bool = True,
        progress: Callable[[float, str], None] | None = None, own_key: bool = False,
        part: Callable[[Any], None] | None = None, caller: Caller | None = None, reader: Reader | None = None,
    ) -> Result:  # fmt: skip
        """Carry one call through every stage. Never raises for a bad call: it returns a result.

        `own_key` is for keys that toolgate makes itself. A caller who could use a job's or a run's key before that does
        would have it pass for done."""
        redactor, ledger = self.services.redactor, self.services.ledger
        if progress is not None:
            progress = clean_progress(redactor, progress)
        flow = Flow(name, args, persona, None, NO_TRAIL, wait, new_id("c"), progress)
        if part is not None:
            flow.part = clean_part(redactor, flow, part)
        flow.caller, flow.reader = caller, reader
        ledger.callers += 1
        underway = self.services.unrecorded.underway
        underway.add(flow.call_id)
        try:
            redactor.refresh()
            check_lengths(trail, key)
            if trail is not None and trail is not NO_TRAIL:
                flow.trail = clean_trail(redactor, trail)
            if key is not None:
                flow.key = redactor.redact(key)
                if not own_key:
                    check_own(key)
            await self._pass(flow)
        except CallError as error:
            await clean_error(redactor, error, flow.hidden)
            refused = flow.refused(error, await self.refusals.record(flow, error))
            await self.services.earned.after(flow, refused)
            return refused
        except asyncio.CancelledError:
            await self._abandon(flow)
            raise
        except Exception as error:
            tell(flow, self.services, "the gate failed")
            return await self._bug(flow, error)
        finally:
            ledger.callers -= 1
            underway.discard(flow.call_id)
        assert flow.result is not None
        if flow.cancelled:
            raise asyncio.CancelledError
        if flow.result.error is not None or (flow.call is not None and flow.call.change is not None):
            await self.services.earned.after(flow, flow.result)
        if flow.tool is not None and flow.tool.follow is not None and flow.result.ok:
            await self._follow(flow, flow.result)
        return flow.result

    async def calls(
        self, requests: Sequence[tuple[str, Mapping[str, Any]]], persona: str, **more: Any
    ) -> list[Result]:
        """Several calls of one request, in order; a refusal or an unknown tool stops the rest."""
        results: list[Result] = []
        for index, (name, args) in enumerate(requests):
            result = await self.call(name, args, persona, **more)
            results.append(result)
            code = result.error.code if result.error is not None else None
            if code is not None and (code in _STOPS or by_policy(code, result.data)):
                results += [_not_run(rest, name) for rest, _ in requests[index + 1 :]]
                break
        return results

    async def refuse(self, name: str, args: Mapping[str, Any], persona: str, error: CallError) -> Result:
        """An attempt that is refused before it is a call: nothing runs, and it is in the ledger."""
        flow = Flow(name, args, persona, None, NO_TRAIL, False, new_id("c"))
        with suppress(CallError):
            late = resolve(self.services, flow)
            if late is not None:
                late.close()  # for an attempt no server is asked whether it knows that tool
        return flow.refused(error, await self.refusals.record(flow, error))

    async def _follow(self, flow: Flow, first: Result) -> None:
        """The call that this one leads to, for the same caller. A repeated key repeats both, so neither runs twice."""
        assert flow.tool is not None
        assert flow.tool.follow is not None
        wanted = flow.tool.follow.next(first.data)
        if wanted is None:
            return
        key = f"{flow.key}/follow" if flow.key else None
        second = await self.call(
            *wanted, flow.persona, key=key, trail=flow.trail, wait=flow.wait, own_key=True, caller=flow.caller
        )  # fmt: skip
        first.data = flow.tool.follow.told(first.data, second)
        first.text = None

    async def _pass(self, flow: Flow, stages: Sequence[Stage] = ORDER) -> None:
        services = self.services
        for stage in stages:
            back = stage(services, flow)
            if back is None:
                continue
            if type(back) is CoroutineType:
                back = await back
                if flow.result is not None:
                    return
            if back is not None:
                await self._pass(flow, ORDER[ORDER.index(back) :])
                return

    async def _abandon(self, flow: Flow) -> None:
        """Cancelled between begin and settle: the journal must say what we know, and no more than that."""
        if flow.started is not None and flow.result is None:
            flow.outcome = flow.outcome or _interrupted(flow)
            await asyncio.shield(settle(self.services, flow))

    async def _bug(self, flow: Flow, error: Exception) -> Result:
        """Ours, not the caller's. What began is settled as unknown; the trace is in the log only."""
        failure = Failed(
            str(
                self.services.redactor.redact(
                    f"toolgate itself failed: {type(error).__name__}: {error}", flow.hidden
                )
            ),
            "the trace is in the log; report it",
        )
        if flow.started is not None and flow.result is None:
            await settle(self.services, flow)
        return flow.result or flow.refused(failure, await self.refusals.record(flow, failure))


def _interrupted(flow: Flow) -> Outcome:
    if not flow.running:
        return Broke(Code.CANCELLED, "it was cancelled before it ran")
    if not flow.effectful:
        return Broke(Code.CANCELLED, "it was cancelled")
    return Lost(
        Code.UNKNOWN_OUTCOME, "it was cancelled again while it was being found out whether it happened"
    )


def _not_run(name: str, after: str) -> Result:
    problem = Problem(
        Code.CANCELLED, f"not run: {after} before it was refused", "make the call again by itself"
    )
    return Result(False, name, None, problem, Meta())


Part = Callable[[Any], None]
_END = object()


async def stream(begin: Callable[[Part], Coroutine[Any, Any, Result]]) -> AsyncIterator[Any]:
    """The parts as they come, then the Result. Whoever stops listening ends the call."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Any] = asyncio.Queue()

    def take(part: Any) -> None:  # tools may speak from their threads
        loop.call_soon_threadsafe(arrived.put_nowait, part)

    call = asyncio.ensure_future(begin(take))
    call.add_done_callback(lambda _: arrived.put_nowait(_END))
    try:
        while (part := await arrived.get()) is not _END:
            yield part
        yield call.result()
    finally:
        if not call.done():
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
