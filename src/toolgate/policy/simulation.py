"""Simulation of a policy: its examples beside the rules, calls that were really made, and how both are told.

Of a replay, only what policy decided is compared: a pause, a project that is not trusted or a server that is held refuse
under every policy. And only what can be decided again: where the policy of that time, if it is still in force, says
something else about what the record holds (masked arguments, files that only a plan named), the record does not suffice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from toolgate.core.clock import iso
from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.policy.checks import only_persona
from toolgate.policy.explain import ExplainedStep, Explanation, FactsFor
from toolgate.policy.held import RULE as HELD
from toolgate.policy.model import ExampleCall
from toolgate.policy.policy import Policy

if TYPE_CHECKING:
    from toolgate.policy.model import ExampleSpec

Kind = Literal["same", "stricter", "looser", "unknown"]
KINDS: tuple[Kind, ...] = ("same", "stricter", "looser", "unknown")
_CIRCUMSTANCES = frozenset({"", "hard:paused", "hard:untrusted", "hard:undeclared-effect"})
"""Rules of refusals that no policy file decides; without a rule it was the gate or a tool, such as an unattended gate."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    seq: int
    at: int
    """Microseconds since 1970."""
    persona: str
    tool: str
    args: Mapping[str, Any]
    verdict: Verdict
    rule: str
    findings: tuple[str, ...] = ()
    changed: tuple[MountPath, ...] = ()
    """The files of its Change, where that is recorded."""
    policy: str = ""
    """The fingerprint of the policy that decided it, where that is known."""

    @property
    def by_policy(self) -> bool:
        denied = self.verdict is Verdict.DENY
        return not (
            denied and (self.rule in _CIRCUMSTANCES or self.rule == HELD)
        )  # policy itself asks about held files


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A call that would be decided otherwise today, or that could not be made any more."""

    call: RecordedCall
    kind: Kind
    decision: Decision | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    differences: tuple[ReplayDifference, ...]
    totals: Mapping[Kind, int]
    left_out: int = 0
    """Calls that were refused by something else than policy."""


def replay(
    calls: Iterable[RecordedCall], policy: Policy, facts_for: FactsFor, current: Policy | None = None
) -> Replay:
    """`current` is the policy in force: what it decided, it must decide again."""
    totals: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    differences = []
    left_out = 0
    for call in calls:
        if not call.by_policy:
            left_out += 1
            continue
        difference = _compare(call, policy, facts_for, current)
        totals[difference.kind] += 1
        if difference.kind != "same":
            differences.append(difference)
    return Replay(tuple(differences), totals, left_out)


def _compare(
    call: RecordedCall, policy: Policy, facts_for: FactsFor, current: Policy | None
) -> ReplayDifference:
    try:
        made = ExampleCall(tool=call.tool, args=dict(call.args), persona=call.persona, findings=call.findings)
        facts = _with_changed(facts_for(made), call.changed)
    except CallError as error:
        return ReplayDifference(call, "unknown", None, f"cannot be made now: {error.message}")
    decision = policy.decide(facts)
    if current is not None and call.policy == current.fingerprint:
        again = current.decide(facts)
        if again.verdict is not call.verdict:
            return _beyond_the_record(call, again, decision)
    step = decision.verdict.strictness - call.verdict.strictness
    kind: Kind = "same" if step == 0 else "stricter" if step > 0 else "looser"
    return ReplayDifference(call, kind, decision)


def _with_changed(facts: Facts, changed: tuple[MountPath, ...]) -> Facts:
    """As the gate judged it once it was planned: by the files of the Change too."""
    if not changed:
        return facts
    return replace(facts, paths=tuple(dict.fromkeys((*facts.paths, *changed))), changed=changed)


def _beyond_the_record(call: RecordedCall, again: Decision, decision: Decision) -> ReplayDifference:
    if (again.verdict, again.rule) == (decision.verdict, decision.rule):
        return ReplayDifference(call, "same", decision)
    told = "what is recorded of it (masked values, files that only its plan named) does not suffice to decide it again"
    return ReplayDifference(call, "unknown", None, told)


@dataclass(frozen=True, slots=True)
class ExampleOutcome:
    where: str
    """The rule it stands beside, or `policy.examples`, and its number there."""
    call: ExampleCall
    expected: Verdict
    explanation: Explanation | None
    problem: str = ""
    """Why the call could not be made at all."""

    @property
    def passed(self) -> bool:
        return self.explanation is not None and self.explanation.decision.verdict is self.expected


def run_examples(policy: Policy, facts_for: FactsFor) -> tuple[ExampleOutcome, ...]:
    return tuple(_run(policy, facts_for, where, call, example) for where, call, example in _all(policy))


def _all(policy: Policy) -> Iterator[tuple[str, ExampleCall, ExampleSpec]]:
    for rule in policy.all_rules:
        usual = only_persona(rule.spec)
        for number, example in enumerate(rule.spec.examples, start=1):
            call = example.call.model_copy(update={"persona": example.call.persona or usual})
            yield f"{rule.name} #{number}", call, example
    for number, example in enumerate(policy.parts.policy.examples, start=1):
        yield f"policy.examples #{number}", example.call, example


def _run(
    policy: Policy, facts_for: FactsFor, where: str, call: ExampleCall, example: ExampleSpec
) -> ExampleOutcome:
    expected = Verdict(example.expect)
    try:
        facts = facts_for(call)
    except CallError as error:
        return ExampleOutcome(where, call, expected, None, error.message)
    return ExampleOutcome(where, call, expected, policy.explain(facts))


MAX_ARGS = 100


def render_explanation(explanation: Explanation) -> str:
    facts, decision = explanation.facts, explanation.decision
    lines = [
        _call(facts.persona, facts.tool.name, facts.args),
        f"  {facts.effects.words()}",
        f"{decision.verdict.upper()} by {decision.rule} (step {decision.step}): {decision.reason}",
    ]
    if decision.channels:
        lines.append(f"  the answer must come from: {', '.join(decision.channels)}")
    shown = ""
    for line in explanation.lines:
        if line.persona != shown:
            lines += ["", f"as {line.persona}"]
            shown = line.persona
        lines.append(_line(line))
    return _page(lines)


def render_examples(outcomes: Iterable[ExampleOutcome]) -> str:
    lines = []
    passed = failed = 0
    for outcome in outcomes:
        passed += outcome.passed
        failed += not outcome.passed
        lines += _outcome(outcome)
    return _page([*lines, f"{passed} passed, {failed} failed"])


def render_replay(result: Replay) -> str:
    lines = [line for difference in result.differences for line in _difference(difference)]
    totals = ", ".join(f"{result.totals[kind]} {kind}" for kind in KINDS)
    if result.left_out:
        lines.append(
            f"left out: {result.left_out:,} refused by something else than policy, such as a pause or a missing trust"
        )
    return _page([*lines, totals])


def _page(lines: Iterable[str]) -> str:
    return "".join(_shown(line) + "\n" for line in lines)


def _shown(text: str) -> str:
    """Control and bidirectional characters made visible, so that a call cannot disturb a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def _call(persona: str, tool: str, args: Mapping[str, Any]) -> str:
    spelled = json.dumps(args, sort_keys=True, default=str)
    return f"{persona}: {tool} {spelled if len(spelled) <= MAX_ARGS else spelled[:MAX_ARGS] + '…'}"


def _line(line: ExplainedStep) -> str:
    mark = ">" if line.decided else " "
    said = line.verdict or "-"
    return f"{mark} {line.step} {said:<5} {line.text}: {line.why}".rstrip(": ")


def _outcome(outcome: ExampleOutcome) -> list[str]:
    call = _call(outcome.call.persona, outcome.call.tool, outcome.call.args)
    if outcome.explanation is None:
        return [f"FAIL {outcome.where}: {call}", f"     the call cannot be made: {outcome.problem}"]
    decision = outcome.explanation.decision
    if outcome.passed:
        return [f"ok   {outcome.where}: {call} -> {decision.verdict} by {decision.rule}"]
    return [
        f"FAIL {outcome.where}: {call}",
        f"     expected {outcome.expected}, got {decision.verdict} by {decision.rule}: {decision.reason}",
    ]


def _difference(difference: ReplayDifference) -> list[str]:
    call = difference.call
    head = f"{difference.kind:<8} #{call.seq} {iso(call.at)} {_call(call.persona, call.tool, call.args)}"
    before = f"         was {call.verdict} by {call.rule}"
    if difference.decision is None:
        return [head, f"{before}, {difference.problem}"]
    now = difference.decision
    return [head, f"{before}, now {now.verdict} by {now.rule}: {now.reason}"]
