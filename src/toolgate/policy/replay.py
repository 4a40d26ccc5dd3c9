"""Replay: what would this policy have decided on calls that were really made?

Only what policy decided is compared: a pause, a project that is not trusted or a server that is held refuse under every
policy. And only what can be decided again: where the policy of that time, if it is still in force, says something else
about what the record holds (masked arguments, files that only a plan named), the record does not suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.policy.facts import FactsFor
from toolgate.policy.held import RULE as HELD
from toolgate.policy.model import ExampleCall
from toolgate.policy.policy import Policy

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
