"""Policy tests: the examples written beside the rules, run against the whole policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolgate.core.decision import Verdict
from toolgate.core.errors import CallError
from toolgate.policy.checks import only_persona
from toolgate.policy.explain import Explanation
from toolgate.policy.facts import FactsFor
from toolgate.policy.policy import Policy

if TYPE_CHECKING:
    from toolgate.policy.model import ExampleCall, ExampleSpec


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
