"""Replay: what would this policy have decided on calls that were really made?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import CallError
from toolgate.policy.facts import FactsFor
from toolgate.policy.model import ExampleCall
from toolgate.policy.policy import Policy

Kind = Literal["same", "stricter", "looser", "unknown"]
KINDS: tuple[Kind, ...] = ("same", "stricter", "looser", "unknown")


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


def replay(calls: Iterable[RecordedCall], policy: Policy, facts_for: FactsFor) -> Replay:
    totals: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    differences = []
    for call in calls:
        difference = _compare(call, policy, facts_for)
        totals[difference.kind] += 1
        if difference.kind != "same":
            differences.append(difference)
    return Replay(tuple(differences), totals)


def _compare(call: RecordedCall, policy: Policy, facts_for: FactsFor) -> ReplayDifference:
    try:
        made = ExampleCall(tool=call.tool, args=dict(call.args), persona=call.persona, findings=call.findings)
        facts = facts_for(made)
    except CallError as error:
        return ReplayDifference(call, "unknown", None, error.message)
    decision = policy.decide(facts)
    step = decision.verdict.strictness - Verdict(call.verdict).strictness
    kind: Kind = "same" if step == 0 else "stricter" if step > 0 else "looser"
    return ReplayDifference(call, kind, decision)
