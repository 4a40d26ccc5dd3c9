"""Stage 11: how it ended goes into the journal before anybody hears of it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical
from toolgate.core.display import encodable
from toolgate.core.errors import CallError, Code, Failed, InvalidArgs, UnknownOutcome
from toolgate.core.event import Committed, Event, Unknown
from toolgate.core.event import Failed as FailedEvent
from toolgate.core.records import replace
from toolgate.core.result import Meta, Problem, Result
from toolgate.gate.flow import Broke, Done, Flow, Lost, Services
from toolgate.gate.unrecorded import late
from toolgate.ledger.ledger import View, Work
from toolgate.ledger.undone import undone_rows

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
