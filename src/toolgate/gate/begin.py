"""Stage 7: ONE transaction in which everything is checked once more and the call is recorded as started.

Policy as it is now, pauses, the approval of exactly this digest (used up here) or a grant, limits, the
idempotency claim. After this row the effect may have happened; before it, nothing has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolgate.consent.grants import grant_for
from toolgate.consent.works import approval_for, close_due
from toolgate.core.apart import LARGE
from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import CallError, RateLimited
from toolgate.core.event import Configured, Started
from toolgate.core.finding import recorded
from toolgate.core.names import HUMAN
from toolgate.core.records import dataclass, replace
from toolgate.gate.authorize import authorize, refused, stricter
from toolgate.gate.earned import raised
from toolgate.gate.scan import recorded_args
from toolgate.gate.stored import live_claim, objection, replay
from toolgate.ledger.ledger import View, Work, all_questions
from toolgate.ledger.limits import blocked, used_up
from toolgate.storage.port import FREE

if TYPE_CHECKING:
    from toolgate.core.change import Change
    from toolgate.core.ports import Files, Rules
    from toolgate.gate.flow import Flow, Services, Stage
    from toolgate.ledger.state import State
    from toolgate.storage.port import Row

MAX_TURNS = 5


@dataclass(slots=True)
class Begun:
    decision: Decision


@dataclass(frozen=True, slots=True)
class Stored:
    claim: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BeginStopped:
    error: CallError


@dataclass(frozen=True, slots=True)
class Unearned:
    """A limit would refuse it that a good record raises: whether the record is good is not known yet."""

    persona: str
    scope: str


@dataclass(frozen=True, slots=True)
class AskAgain:
    why: str


class BeginWork(Work[Begun | Stored | BeginStopped | Unearned | AskAgain]):
    value: Begun | Stored | BeginStopped | Unearned | AskAgain

    def __init__(self, services: Services, flow: Flow) -> None:
        self.durable = flow.effectful
        self.rows = []
        self.services, self.flow = services, flow
        self.claim = flow.claimed = flow.claim
        if self.claim:
            self.scopes = (self.claim,)
        if flow.call is not None and len(flow.call.args_json) > LARGE:
            self.heavy = True

    @property
    def looks_at_questions(self) -> bool:
        """Only a call that asks looks for its approval. One that comes to ask meanwhile is sent back and comes again."""
        return self.flow.decision is not None and self.flow.decision.verdict is Verdict.ASK

    def refs(self, state: State, now: int) -> Iterable[str]:
        return all_questions(state, now) if self.looks_at_questions else ()

    def decide(self, view: View) -> Begun | Stored | BeginStopped | Unearned | AskAgain:
        flow = self.flow
        assert flow.call is not None
        assert flow.facts is not None
        if view.state.paused and (stopped := self._paused(view)) is not None:
            return stopped
        if self.claim and (claim := live_claim(view, self.claim)) is not None:
            problem = objection(claim, flow.call.request, flow.key or "")
            if problem is not None:
                return BeginStopped(problem)
            if claim[3] in ("committed", "happened"):
                return Stored(claim)
        rules = self.services.rules()
        decision, ref = self._authorize_again(view, rules)
        if decision.verdict is Verdict.DENY:
            return BeginStopped(refused(flow, flow.facts, decision))
        if decision.verdict is Verdict.ASK and not ref:
            return AskAgain(self._what_changed(view, decision))
        windows = rules.windows(flow.persona, flow.call.tool, flow.facts.effects.writes)
        if flow.earned:
            windows = raised(windows, flow.earned)
        full = blocked(view.state, windows, view.now)
        if full is not None:
            window = full[0]
            if window.most > window.limit and window.scope not in flow.earned:
                return Unearned(window.scope.partition("/")[2], window.scope)
            return BeginStopped(used_up(*full))  # an approval stays unused and waits for the repeated call
        if view.state.written and (much := self._too_much(view)) is not None:
            return BeginStopped(much)
        if view.state.policy != rules.fingerprint:
            # the journal says which policy was in force before the first call that started under it
            view.emit(Configured(policy=rules.fingerprint, by=self.services.owners.me))
        self._start(view, decision, ref)
        return Begun(decision)

    def _paused(self, view: View) -> BeginStopped | None:
        """A pause stops everything, the giving back of an earlier result too."""
        facts = self.flow.facts
        assert facts is not None
        decision = self.services.rules().decide(replace(facts, paused=view.state.paused))
        return BeginStopped(refused(self.flow, facts, decision)) if decision.rule == "hard:paused" else None

    def _authorize_again(self, view: View, rules: Rules) -> tuple[Decision, str]:
        """The decision now, and the approval or grant that turns an ask into a yes."""
        flow = self.flow
        call, facts = flow.call, flow.facts
        assert call is not None
        assert facts is not None
        if view.state.paused:
            decision = rules.decide(replace(facts, paused=view.state.paused))
        elif rules is flow.rules and flow.decision is not None:
            decision = flow.decision  # the same pure function of the same facts
        else:
            decision = rules.decide(facts)
        if flow.repeats is not None:
            decision = stricter(decision, flow.repeats)
        if decision.verdict is not Verdict.ASK:
            return decision, ""
        rights = rules.rights(flow.persona)
        approval = approval_for(
            view.state, call.digests, flow.persona, view.now, decision.rule, rights, decision.channels
        )
        if approval is not None:
            return decision, approval.id
        if decision.singly:
            return decision, ""
        grant = grant_for(view.state, call, facts, rights, view.now, decision.channels)
        return decision, grant.id if grant is not None else ""

    def _what_changed(self, view: View, decision: Decision) -> str:
        call = self.flow.call
        assert call is not None
        approval = approval_for(view.state, call.digests, self.flow.persona, view.now)
        if approval is not None and approval.body["rule"] != decision.rule:
            return f"the rule that asks is now {decision.rule}, it was {approval.body['rule']}"
        if approval is not None:
            return f"the rights of {self.flow.persona} have changed since it was approved"
        if self.flow.question:
            return "what would run is no longer what was approved, or the approval was used or has expired"
        return "policy asks for it now"

    def _too_much(self, view: View) -> CallError | None:
        return self.services.ledger.allowance.refusal(view.state, self.flow.persona, view.now)

    def _start(self, view: View, decision: Decision, ref: str) -> None:
        flow = self.flow
        call, tool = flow.call, flow.tool
        assert call is not None
        assert tool is not None
        assert flow.facts is not None
        ends = view.state.ends
        if ends and ends[0][0] <= view.now:
            close_due(view)
        args: Any = recorded_args(self.services, flow)
        if args is call.args and "orjson" in sys.modules:
            import orjson

            args = orjson.Fragment(call.args_json)  # spelled already
        started = Started(
            call=call.id, persona=call.persona, tool=call.tool, conversation=call.trail.conversation,
            ref=ref, claim=self.claim, digest=call.digest, definition=call.definition,
            owner=self.services.owners.me, args=args,
            rule=decision.rule, decision=decision.verdict, reason=decision.reason,
            effectful=flow.effectful, writes=flow.facts.effects.writes, trail=call.trail.words(),
            request=call.request if self.claim and call.digest != call.request else "",
        )  # fmt: skip
        if (change := call.change) is not None:
            started = replace(
                started,
                change=change.manifest,
                undoes=change.undoes,
                findings=recorded(change.findings),
                kept=_kept(self.services.files, change, call.persona),
            )
        view.emit(started)


def _kept(files: Files | None, change: Change, persona: str) -> dict[str, int]:
    """What a persona leaves where nothing is deleted: every version stays, and only a human can clear it away."""
    if files is None or persona == HUMAN:
        return {}
    lasting = {mount for mount in {file.path.mount for file in change.files} if not files.deletes(mount)}
    size = (
        sum(len(file.after or b"") for file in change.files if file.path.mount in lasting) if lasting else 0
    )
    return {"bytes": size} if size > FREE else {}


async def begin(services: Services, flow: Flow) -> Stage | None:
    if services.unrecorded.pending:
        await services.unrecorded.write()  # limits, keys and undo go by what the journal says
    work = BeginWork(services, flow)
    try:
        if not services.ledger.at_once(work):
            await services.ledger.do(work)
    except asyncio.CancelledError:
        flow.started = _started(work)
        raise
    except CallError as problem:
        if not work.rows:
            raise  # it never came to a row
        _never_ran(services, flow)
        raise type(problem)(f"nothing ran: {problem.message}", problem.fix) from problem
    match work.value:
        case Begun(decision):
            flow.decision, flow.started = decision, work.rows[-1]
            return None
        case Stored(claim):
            flow.result = await replay(services, flow, claim)
            return None
        case BeginStopped(error):
            raise error
        case Unearned(persona, scope):
            earns = services.rules().earns.get(persona, 0)
            found = (await services.earned.step(persona, earns)).step if earns else 0
            flow.earned = {**flow.earned, scope: found}
            return begin
        case AskAgain(why):
            flow.turns += 1
            if flow.turns > MAX_TURNS:
                raise RateLimited(
                    f"it kept changing while it was asked about: {why}", "try again when things are calm"
                )
            flow.asked_again = why
            return authorize


def _never_ran(services: Services, flow: Flow) -> None:
    """Its row may have landed although nobody could say so; then the journal believes that it runs."""
    call = flow.call
    assert call is not None
    services.unrecorded.never_ran(
        call.request, call=call.id, persona=call.persona, tool=call.tool,
        conversation=call.trail.conversation, claim=flow.claimed,
    )  # fmt: skip


def _started(work: BeginWork) -> Row | None:
    """Rows of a transaction that failed were never written."""
    written = work.rows if work.error is None else ()
    return written[-1] if written and written[-1].kind == "started" else None
