"""Stage 3: policy says allow, ask or deny. It is asked again in `begin`, inside the transaction.

The loop guard reads from the ledger what a run did before: going round in circles is a decision of policy, too. Equal
means the same tool with the same arguments, whoever of the run calls, and the same result. A circle has up to five
calls. After its second round the model is told, before its third a human is asked, and a fourth is refused. Only calls
that name a run are looked at; others pay nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import compact
from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import BlockedContent, BlockedPath, CallError, NotAllowed
from toolgate.core.finding import recorded
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, replace
from toolgate.gate.flow import Broke, Done
from toolgate.ledger.state import parsed
from toolgate.policy.hard import SHUT
from toolgate.policy.persona import SCAN_STEP
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.core.ports import Facts
    from toolgate.gate.flow import Flow, Services


def authorize(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    assert flow.facts is not None
    if flow.facts.findings:  # of an earlier turn: what is planned now is scanned again
        flow.facts = replace(flow.facts, findings=())
    flow.rules = services.rules()
    flow.decision = flow.rules.decide(flow.facts)
    if flow.trail.run:
        return _of_a_run(services, flow)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow, flow.facts, flow.decision)
    return None


async def _of_a_run(services: Services, flow: Flow) -> None:
    """An agent that goes round in circles: policy hears of it as of anything else about a call."""
    assert flow.facts is not None
    assert flow.decision is not None
    flow.repeats = await look_back(services, flow)
    flow.decision = stricter(flow.decision, flow.repeats)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow, flow.facts, flow.decision)


def with_paths(facts: Facts, more: tuple[str, ...]) -> Facts:
    """Facts that also cover the files a Change touches, which arguments need not name."""
    known = set(facts.paths)
    added = tuple(MountPath(path) for path in more if path not in known)
    return replace(facts, paths=facts.paths + added) if added else facts


def refused(flow: Flow, facts: Facts, decision: Decision) -> CallError:
    if facts.findings and decision.step == SCAN_STEP:
        return BlockedContent(
            f"{facts.persona} may not write this with {facts.tool.name}: {decision.reason}",
            "leave it out; or let policy ask or allow, by `scan:` in toolgate.yaml or a rule with "
            "`when: {findings: [...]}` (docs/scan.md)",
            data={"rule": decision.rule, "findings": recorded(facts.findings)},
        )
    kind = BlockedPath if decision.rule in SHUT else NotAllowed
    return kind(
        f"{facts.persona} may not call {facts.tool.name}: {decision.reason}",
        _way_on(flow, decision),
        data={"rule": decision.rule},
    )


def _way_on(flow: Flow, decision: Decision) -> str:
    """For whoever called: an agent has no shell, so what is done there is said to be for a human."""
    why = f"a human can see why with `toolgate policy explain {flow.call_id}`"
    if decision.fix:
        return f"{decision.fix}; {why}"
    return f"{why}; `tools.list` shows what may be called" if decision.step > 1 else why


LONGEST = 5
"""Calls in the longest circle that is looked for."""
TOLD, ASKED, STOPPED = 1, 2, 3
"""Whole rounds before this call, after which its result has a note, a human is asked, nothing runs any more."""
_ROWS = 64
_FAR = 4000
"""How far back the journal is read: rows of the run, and rows of everybody."""
_KINDS = ("started", "committed", "failed", "denied")
RULE = "loop:"
MEASURED = frozenset({"duration_ms", "memory"})
"""What a result says of how it was made: it differs each time and makes no other result."""
DELEGATING = frozenset({"ai.ask"})
"""Handing a question to a helper is no step of its own: what the helper does counts."""


class PastCall(NamedTuple):
    """One call of the run that has ended."""

    persona: str
    same: str
    outcome: str


class Circle(NamedTuple):
    """How the run's last calls repeat themselves, if the call at hand is made."""

    length: int = 0
    steps: int = 0
    """Calls before this one that belong to it, of the whole rounds and of the one that is under way."""
    expected: str = ""
    """The result of this call one round ago."""

    @property
    def rounds(self) -> int:
        return self.steps // self.length if self.length else 0


@dataclass(frozen=True, slots=True)
class Repeats:
    circle: Circle
    decision: Decision | None

    def outcome(self, flow: Flow) -> str:
        if type(flow.outcome) is Done:
            data = flow.data
            if type(data) is dict and not MEASURED.isdisjoint(data):
                said = {name: value for name, value in data.items() if name not in MEASURED}
                return _hash(_spelled(said))
            return _hash(flow.text)
        broke = flow.outcome
        return _hash(f"{broke.code}:{broke.message}") if isinstance(broke, Broke) else ""

    def note(self, flow: Flow) -> str:
        """For the model, with the result that closes the second round or a later one."""
        length, steps, expected = self.circle
        if not length or (steps + 1) // length <= TOLD or expected != self.outcome(flow):
            return ""
        what = "this very call" if length == 1 else f"these {length} calls in turn"
        return (
            f"You have made {what} {(steps + 1) // length} times with the same result. Repeating changes nothing: "
            "use what you have, try something else, or answer."
        )


def stricter(decision: Decision, repeats: Repeats) -> Decision:
    """The guard's word stands before an ask of policy, which a grant might cover, and before a refusal by policy only
    as a refusal: nobody is asked about what is refused anyway."""
    own = repeats.decision
    if own is None or own.verdict.strictness < decision.verdict.strictness:
        stopped = own is not None and decision.verdict is Verdict.DENY
        return replace(own, verdict=Verdict.DENY, rule=f"{RULE}stop") if own and stopped else decision
    return own


async def look_back(services: Services, flow: Flow) -> Repeats:
    call = flow.call
    assert call is not None
    same = _hash(f"{call.tool}\n{call.sealed_json or call.args_json}")
    flow.trail = replace(flow.trail, same=same)
    flow.call = replace(call, trail=flow.trail)
    moves = await _moves(services, flow)
    whole = circle(moves, same)
    own = circle([move for move in moves if move.persona == flow.persona], same)
    found = max(whole, own, key=lambda one: one.rounds)
    return Repeats(found, _decision(found, flow))


def circle(moves: Sequence[PastCall], same: str) -> Circle:
    """The circle with the most rounds that the next call would go on with; of equals the shortest."""
    best = Circle()
    for length in range(1, LONGEST + 1):
        if len(moves) < length or moves[-length].same != same:
            continue
        steps = length
        while steps < len(moves) and moves[-steps - 1][1:] == moves[length - steps - 1][1:]:
            steps += 1
        found = Circle(length, steps, moves[-length].outcome)
        if found.rounds > best.rounds:
            best = found
    return best


def _decision(found: Circle, flow: Flow) -> Decision | None:
    if found.rounds < ASKED:
        return None
    what = "the same call" if found.length == 1 else f"the same {found.length} calls in turn"
    told = f"the run {flow.trail.run} has made {what} {found.rounds} times with the same result"
    if found.rounds >= STOPPED:
        return Decision(Verdict.DENY, f"{told}: it is stopped", f"{RULE}stop", 1)
    if found.steps % found.length:
        return None  # a human let this round begin
    return Decision(Verdict.ASK, f"{told}: shall it go on?", f"{RULE}repeat", 1, singly=True)


async def _moves(services: Services, flow: Flow) -> list[PastCall]:
    """The calls of this run that have ended, the oldest first, without an earlier attempt at this very one."""
    backend, trail = services.ledger.backend, flow.trail
    newest = (await backend.head()).seq
    rows = await backend.rows(
        Filter(
            after=max(newest - _FAR, 0), conversation=trail.conversation, kinds=_KINDS, newest_first=True,
            limit=_ROWS,
        )
    )  # fmt: skip
    if not any(trail.same in row.body for row in rows):
        return []  # it was never made before: the usual case
    endings: dict[str, str] = {}
    found: list[PastCall] = []
    for row in rows:
        if row.kind in ("committed", "failed"):
            endings[row.call] = _ending(row)
            continue
        told = parsed(row)
        words = told.get("trail", {})
        if (
            row.tool in DELEGATING
            or words.get("run") != trail.run
            or (flow.claim and row.claim == flow.claim)
        ):
            continue
        outcome = endings.get(row.call, "") if row.kind == "started" else _hash(f"denied:{told.get('rule')}")
        found.append(PastCall(row.persona, words.get("same", ""), outcome or row.call))
    found.reverse()
    return found


def _ending(row: Row) -> str:
    body = parsed(row)
    return (
        str(body.get("same") or "") if row.kind == "committed" else _hash(f"{body['code']}:{body['error']}")
    )


def _spelled(value: Any) -> str:
    try:
        return compact(value)
    except TypeError:  # what JSON has no word for
        return json.dumps(value, default=str)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
