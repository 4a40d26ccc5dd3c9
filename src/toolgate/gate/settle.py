"""Stage 11: how it ended goes into the journal before anybody hears of it.

Calls that never began are recorded too; floods of them are counted, not stored one by one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical
from toolgate.core.display import encodable
from toolgate.core.errors import CallError, Code, Failed, InvalidArgs, LedgerBroken, UnknownOutcome, by_policy
from toolgate.core.event import Committed, Denied, Event, Flood, Limited, Rejected, Unknown
from toolgate.core.event import Failed as FailedEvent
from toolgate.core.finding import recorded
from toolgate.core.names import PERSONA
from toolgate.core.records import dataclass, field, replace
from toolgate.core.result import Meta, Problem, Result
from toolgate.gate.flow import Broke, Done, Flow, Lost, Services
from toolgate.gate.scan import mask_large, recorded_args
from toolgate.gate.unrecorded import late
from toolgate.ledger.effects import undone_rows
from toolgate.ledger.ledger import View, Work

if TYPE_CHECKING:
    from toolgate.storage.port import Row

log = logging.getLogger("toolgate.gate")
SUMMARY = 200


class SettleWork(Work[None]):
    def __init__(self, flow: Flow) -> None:
        self.durable = flow.effectful
        self.rows = []
        self.flow = flow
        self.event = _event(flow)

    def decide(self, view: View) -> None:
        flow, event = self.flow, self.event
        if flow.call_id in view.state.live:
            view.emit(event)
        else:  # somebody took us for dead and called it unknown: say what we know
            view.emit(late(event, flow.call.request if flow.call else ""))
        change = flow.call.change if flow.call is not None else None
        if change is not None and change.undoes and event.kind == "committed":
            assert flow.started is not None
            for row in undone_rows(flow.started):
                view.emit(row)


async def settle(services: Services, flow: Flow) -> None:
    work = SettleWork(flow)
    try:
        if not services.ledger.at_once(work):
            await services.ledger.do(work)
    except asyncio.CancelledError:
        if work.rows and work.error is None:  # recorded: whoever takes over must not record it again
            flow.settled, flow.result = work.rows[0], _result(flow, work.rows[0])
        raise
    except CallError as error:
        log.warning("could not record how %s ended: %s", flow.call_id, error.message)
        _keep(services, flow, work.event)
        flow.result = _unsettled(flow, error)
        return
    flow.settled = row = work.rows[0]
    flow.result = _result(flow, row)


def _event(flow: Flow) -> Event:
    call, outcome = flow.call, flow.outcome
    assert call is not None
    claim = flow.claimed
    flow.took_us = flow.duration_us
    if type(outcome) is Done:
        event = Committed(
            call=flow.call_id, persona=flow.persona, tool=call.tool, conversation=flow.trail.conversation,
            claim=claim, duration_us=flow.took_us, summary=_summary(flow), tokens=flow.tokens,
            truncated=flow.truncated, cached=outcome.cached, reconciled=outcome.reconciled,
            artifacts=call.change.made if call.change else (),
        )  # fmt: skip
        if flow.repeats is not None:
            event = replace(event, same=flow.repeats.outcome(flow))
        if call.change is not None and call.change.already:
            event = replace(event, already=sorted(map(str, call.change.already)))
        kept = claim or (flow.tool is not None and flow.tool.keeps_result)
        return replace(event, **_stored(flow)) if kept else event
    common: dict[str, Any] = {
        "call": flow.call_id, "persona": flow.persona, "tool": call.tool,
        "conversation": flow.trail.conversation, "claim": claim, "duration_us": flow.took_us,
    }  # fmt: skip
    if isinstance(outcome, Broke):
        return FailedEvent(**common, code=outcome.code.value, error=outcome.message)
    doubt = outcome or Lost(Code.UNKNOWN_OUTCOME, "it was interrupted")
    return Unknown(**common, code=doubt.code.value, error=doubt.message)


def _stored(flow: Flow) -> dict[str, Any]:
    """What a repeated key gives back."""
    try:
        canonical({"result": flow.data})
    except InvalidArgs:
        return {"result_json": flow.text}
    return {"result": flow.data}


def _summary(flow: Flow) -> str:
    assert flow.tool is not None
    if flow.tool.summarize is not None:
        try:
            return encodable(flow.tool.summarize(flow.data)[:SUMMARY])
        except Exception:
            log.exception("%s could not summarise its result", flow.tool.name)
    told = flow.data.get("summary") if isinstance(flow.data, dict) else None
    return encodable(told[:SUMMARY]) if isinstance(told, str) and told else flow.text[:SUMMARY]


def _keep(services: Services, flow: Flow, event: Event) -> None:
    """Until the journal can be written again."""
    call = flow.call
    assert call is not None
    undoes = call.change is not None and bool(call.change.undoes) and event.kind == "committed"
    services.unrecorded.keep(event, call.request, flow.started if undoes else None)


def _unsettled(flow: Flow, error: CallError) -> Result:
    """What is known, though the journal does not say so yet."""
    outcome = flow.outcome
    fix = f"{error.fix}; the outcome is recorded as soon as that is possible: `toolgate ledger show {flow.call_id}`"
    if isinstance(outcome, Broke):  # whoever hears of it may go on from there: nothing is in doubt
        planned = flow.call is not None and flow.call.change is not None
        known = "it did not happen, and " if planned else ""
        told = f"{outcome.message} ({known}that could not be recorded yet: {error.message})"
        problem = Problem(outcome.code, told, outcome.fix or fix)
        assert flow.tool is not None
        return Result(False, flow.tool.name, flow.data, problem, flow.meta(None))
    if not flow.effectful:
        return flow.refused(Failed(f"it ran, but could not be recorded: {error.message}", error.fix), None)
    told = "it ran, but its outcome" if type(outcome) is Done else "whether it happened is unknown, and that"
    return flow.refused(UnknownOutcome(f"{told} could not be recorded yet: {error.message}", fix), None)


def _result(flow: Flow, row: Row) -> Result:
    assert flow.tool is not None
    outcome = flow.outcome
    if type(outcome) is Done:
        meta = Meta(flow.call_id, row[0], flow.took_us / 1000, flow.tokens, outcome.cached, flow.truncated)
        told = flow.repeats.note(flow) if flow.repeats is not None else ""
        return Result(True, flow.tool.name, flow.data, None, meta, told, flow.read)
    problem = outcome or Lost(Code.UNKNOWN_OUTCOME, "it was interrupted")
    return Result(
        False,
        flow.tool.name,
        flow.data,
        Problem(problem.code, problem.message, problem.fix),
        flow.meta(row.seq),
        note=flow.repeats.note(flow) if flow.repeats is not None else "",
    )


ROWS_A_MINUTE = 30
ATTACKS_A_MINUTE = 600
"""Of refusals by a rule that no configuration lifts, such as those of a garden, and of paths out of a mount: whoever
looks into an attack wants each attempt, not their number."""
_SILENT = frozenset({Code.PENDING, Code.DENIED, Code.EXPIRED})
"""Recorded already, by the question's own events."""


@dataclass
class RefusalTally:
    """How many refusals of one persona were stored lately, and how many only counted."""

    most: int
    stored: deque[float] = field(default_factory=deque)
    skipped: int = 0
    since: int = 0

    def room(self) -> bool:
        now = time.monotonic()
        while self.stored and self.stored[0] < now - 60:
            self.stored.popleft()
        if len(self.stored) >= self.most:
            return False
        self.stored.append(now)
        return True


class Refusals:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._tallies: dict[tuple[str, bool], RefusalTally] = {}

    async def record(self, flow: Flow, error: CallError) -> int | None:
        """The journal row that holds the refusal; None if it is only counted or cannot be written."""
        if error.code in _SILENT or isinstance(error, LedgerBroken):
            return None
        persona = flow.persona if PERSONA.fullmatch(str(flow.persona)) else ""
        await mask_large(self._services, flow)
        return await self.keep(persona, lambda: self._event(flow, persona, error), _is_attack(error))

    async def keep(self, persona: str, make: Callable[[], Event], attack: bool = False) -> int | None:
        """Store one refusal, or only count it if too many came; also what a face refused before it was a call."""
        of = (persona if self._known(persona) else "", attack)
        tally = self._tallies.setdefault(of, RefusalTally(ATTACKS_A_MINUTE if attack else ROWS_A_MINUTE))
        if not tally.room():
            self._count(tally)
            return None
        before, since = tally.skipped, tally.since
        event = await self._write([*self._drain(persona, tally), make()], persona)
        if event is None:
            tally.skipped, tally.since = tally.skipped + before, since or tally.since
            self._count(tally)
        return event

    def _count(self, tally: RefusalTally) -> None:
        tally.since = tally.since or self._services.ledger.clock.now()
        tally.skipped += 1

    def _known(self, persona: str) -> bool:
        """Made-up names share one tally: a flood of names is a flood."""
        try:
            return persona in getattr(self._services.rules(), "personas", ())
        except CallError:  # the policy cannot be read just now
            return False

    async def close(self) -> None:
        for (persona, _), tally in self._tallies.items():
            await self._write(self._drain(persona, tally), None)

    def _drain(self, persona: str, tally: RefusalTally) -> list[Event]:
        if not tally.skipped:
            return []
        event = Flood(
            persona=persona, count=tally.skipped, since=tally.since, until=self._services.ledger.clock.now()
        )
        tally.skipped = tally.since = 0
        return [event]

    async def _write(self, events: list[Event], persona: str | None) -> int | None:
        """The number of the last one. Of a persona that has used up its bytes nothing is stored; it is counted."""
        if not events:
            return None
        allowance = self._services.ledger.allowance

        def decide(view: View) -> None:
            if persona is None or allowance.refusal(view.state, persona, view.now) is None:
                view.events.extend(events)

        work = Work(decide, durable=False)
        try:
            await self._services.ledger.do(work)
        except CallError as error:
            log.warning("a refusal could not be recorded: %s", error.message)
            return None
        return work.rows[-1].seq if work.rows else None

    def _event(self, flow: Flow, persona: str, error: CallError) -> Event:
        common: dict[str, Any] = {
            "call": flow.call_id, "persona": persona, "tool": flow.tool.name if flow.tool else "",
            "trail": {name: encodable(str(value)) for name, value in flow.trail.words().items()},
        }  # fmt: skip
        conversation = flow.trail.conversation
        if flow.call is not None:
            common["conversation"] = conversation
        data = error.data or {}
        if by_policy(error.code, data) and flow.call is not None and flow.tool is not None:
            return Denied(
                **common, rule=str(data.get("rule", "")), reason=error.message, digest=flow.call.digest,
                args=recorded_args(self._services, flow), code=error.code.value,
                findings=recorded(flow.scan.findings),
            )  # fmt: skip
        if error.code is Code.RATE_LIMITED:
            wait = round(float(data.get("retry_after_s", 0)) * 1000)
            return Limited(**common, limit=str(data.get("limit", error.message)), retry_ms=wait)
        message = encodable(str(self._services.redactor.redact(error.message, flow.hidden)))[:500]
        name = str(self._services.redactor.redact(flow.name)) if isinstance(flow.name, str) else ""
        named = encodable(name[:128])
        return Rejected(
            **common, code=error.code.value, error=message if flow.tool else f"{named}: {message}"
        )


def _is_attack(error: CallError) -> bool:
    rule = (error.data or {}).get("rule") if isinstance(error.data, Mapping) else ""
    return error.code is Code.OUTSIDE_MOUNT or str(rule or "").startswith(("hard:", "garden:"))
