"""What the content scan found may make a decision stricter, never looser.

Each finding is judged by itself: by rules that name findings, else by the persona's `scan`, else by that of the project.
The call's own decision knows nothing of findings; the strictest of all counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from toolgate.core.decision import Decision, Verdict
from toolgate.core.finding import FINDING_KINDS, Finding, FindingKind, named
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.ports import Facts
from toolgate.core.records import replace
from toolgate.policy.persona import joined
from toolgate.policy.rules import Rule

if TYPE_CHECKING:
    from toolgate.policy.model import PersonaSpec, ScanSpec, Word

DEFAULTS: Mapping[FindingKind, Word] = {"secret": "ask", "payload": "deny", "hidden": "ask"}
STEP = 7


class Words(NamedTuple):
    """What one persona's findings mean, kind by kind, and who said so."""

    secret: tuple[Word, str]
    payload: tuple[Word, str]
    hidden: tuple[Word, str]

    @classmethod
    def of(cls, line: Sequence[tuple[str, PersonaSpec]], project: ScanSpec) -> Words:
        """The persona's own, else its parents', else the project's, else the default."""

        def word(kind: FindingKind) -> tuple[Word, str]:
            for name, spec in line:
                said = getattr(spec.scan, kind)
                if said is not None:
                    return said, f"scan of {name}"
            said = getattr(project, kind)
            return (said, "scan") if said is not None else (DEFAULTS[kind], "scan, by default")

        return cls(word("secret"), word("payload"), word("hidden"))

    def described(self) -> dict[str, str]:
        return {kind: getattr(self, kind)[0] for kind in FINDING_KINDS}


def judged(facts: Facts, persona: str, rules: Sequence[Rule], words: Words) -> Iterator[Decision]:
    """One decision for each finding, as this persona."""
    for finding in facts.findings:
        alone = replace(facts, paths=(finding.path,), findings=(finding,))
        said = _ruled(alone, persona, rules)
        if said is None:
            word, who = getattr(words, finding.kind)
            if word == "deny" and facts.tool.human:
                word = "ask"  # a human takes something back: what was there before is theirs to restore
            said = Decision(Verdict(word), f"{who}: {finding.kind} is {word}", f"scan:{finding.kind}", STEP)
        yield said


def _ruled(facts: Facts, persona: str, rules: Sequence[Rule]) -> Decision | None:
    fitting = [rule.decision for rule in rules if not rule.misfit(persona, facts)]
    if not fitting:
        return None
    strictest = max(decision.verdict.strictness for decision in fitting)
    first, *rest = (decision for decision in fitting if decision.verdict.strictness == strictest)
    for other in rest:
        first = joined(first, other)
    return replace(first, step=STEP)


def tightened(decision: Decision, found: Sequence[tuple[Finding, Decision]]) -> Decision:
    """The call's decision and what its findings say: the strictest, with every reason that is as strict."""
    worst = max((said.verdict.strictness for _, said in found), default=0)
    if worst < Verdict.ASK.strictness or worst < decision.verdict.strictness:
        return decision
    if decision.verdict is Verdict.DENY:
        return decision
    speaking = [(finding, said) for finding, said in found if said.verdict.strictness == worst]
    rules = list(dict.fromkeys(said.rule for _, said in speaking))
    answer = speaking[0][1]
    for _, said in speaking[1:]:
        answer = joined(answer, said)
    reason = f"found in what would be written: {named([finding for finding, _ in speaking])}"
    if decision.verdict is Verdict.ASK and answer.verdict is Verdict.ASK:
        rules.insert(0, decision.rule)
        reason = f"{decision.reason}; {reason}"
        answer = joined(answer, decision)
    if answer.verdict is Verdict.DENY and worst < Verdict.DENY.strictness:
        return replace(answer, step=STEP)  # no channel can answer for all that asks
    singly = answer.verdict is Verdict.ASK
    return Decision(answer.verdict, reason, "+".join(rules), STEP, answer.channels, singly)
