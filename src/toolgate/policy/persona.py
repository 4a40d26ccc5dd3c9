"""A persona as policy sees it, its standing towards one tool, and what its findings mean.

What the content scan found may make a decision stricter, never looser. Each finding is judged by itself: by rules that
name findings, else by the persona's `scan`, else by that of the project. The call's own decision knows nothing of
findings; the strictest of all counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from toolgate.core.decision import Decision, Verdict
from toolgate.core.effects import Effects
from toolgate.core.finding import FINDING_KINDS, Finding, FindingKind, named
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.names import HUMAN
from toolgate.core.ports import Facts
from toolgate.core.records import dataclass, field, replace
from toolgate.core.tool import Phase, Tool
from toolgate.policy.checks import lineage
from toolgate.policy.globs import any_matches, tool_glob
from toolgate.policy.phases import cell
from toolgate.policy.rules import Rule
from toolgate.policy.values import DEFAULT_USER

if TYPE_CHECKING:
    from toolgate.policy.model import PersonaSpec, ScanSpec, Word

DEFAULT_MOUNTS = ("project", "scratch")


@dataclass(frozen=True, slots=True)
class Persona:
    """With what it left out taken from its parents. Its parents still bound it: see `Policy.decide`."""

    name: str
    phase: Phase | None
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    mounts: frozenset[str]
    parent: str | None
    user: str = DEFAULT_USER

    @classmethod
    def of(
        cls, name: str, personas: Mapping[str, PersonaSpec], default_mounts: Sequence[str] = DEFAULT_MOUNTS
    ) -> Persona:
        line = [personas[member] for member in lineage(name, personas)]
        phase = next((spec.phase for spec in line if spec.phase is not None), None)
        allow = next((spec.allow for spec in line if spec.allow is not None), ())
        mounts = next((spec.mounts for spec in line if spec.mounts is not None), default_mounts)
        user = next((spec.user for spec in line if spec.user is not None), DEFAULT_USER)
        return cls(name, phase, allow, personas[name].deny, frozenset(mounts), personas[name].parent, user)

    def described(self) -> dict[str, object]:
        told: dict[str, object] = {
            "name": self.name,
            "phase": self.phase,
            "allow": sorted(self.allow),
            "deny": sorted(self.deny),
            "mounts": sorted(self.mounts),
        }
        return told | {"user": self.user} if self.user != DEFAULT_USER else told

    @property
    def sees(self) -> str | None:
        """Whose part of a mount it sees; None for the human, who sees all."""
        return None if self.name == HUMAN else self.user

    def names(self, globs: Sequence[str], tool: str) -> bool:
        return any_matches(map(tool_glob, globs), tool)

    def denies(self, tool: str) -> Decision | None:
        if not self.names(self.deny, tool):
            return None
        return Decision(Verdict.DENY, f"{tool} is denied to {self.name}", f"deny:{self.name}", 2)

    def allows(self, tool: str) -> Decision | None:
        if not self.names(self.allow, tool):
            return None
        return Decision(Verdict.ALLOW, f"{tool} is allowed to {self.name}", f"allow:{self.name}", 4)

    def table(self, tool: Tool, effects: Effects) -> Decision | None:
        """What its phase says; a persona without one has no table."""
        if self.phase is None:
            return None
        found = cell(self.phase, tool, effects)
        return Decision(found.verdict, found.reason, f"phase:{self.phase}/{found.row}", 5)

    def silence(self, tool: str) -> Decision:
        return Decision(Verdict.DENY, f"nothing allows {tool} to {self.name}", "silence", 6)


@dataclass(slots=True)
class PersonaRights:
    """Steps 2 to 6 for one persona and one tool name, with everything that does not depend on the call worked out."""

    persona: Persona
    tool: str
    rules: Sequence[Rule]
    _denied: Decision | None = None
    _allowed: Decision | None = None
    _deny: list[Rule] = field(default_factory=list)
    _ask: list[Rule] = field(default_factory=list)
    _allow: list[Rule] = field(default_factory=list)
    _cells: dict[tuple[Effects, str, str], Decision] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._denied = self.persona.denies(self.tool)
        self._allowed = self.persona.allows(self.tool)
        lists = {Verdict.DENY: self._deny, Verdict.ASK: self._ask, Verdict.ALLOW: self._allow}
        for rule in self.rules:
            if rule.about(self.persona.name, self.tool):
                lists[rule.verdict].append(rule)

    @property
    def conditional(self) -> bool:
        """Whether anything about a call, beyond who makes it and of which tool, can change the answer."""
        return any(rule.conditional for rule in (*self._deny, *self._ask, *self._allow))

    def decide(self, facts: Facts) -> Decision:
        return self._denied or self._ruled(facts) or self._allowed or self._cell(facts)

    def outlook(self, facts: Facts) -> Decision:
        """What to expect before a call's arguments are known: rules that let only some calls through count too."""
        plain = self.decide(facts)
        if (
            plain.verdict is not Verdict.DENY
            or plain is self._denied
            or plain in [r.decision for r in self._deny]
        ):
            return plain
        for rule in (*self._allow, *self._ask):
            if rule.conditional:
                reason = f"for some calls: {rule.reason}"
                return Decision(rule.verdict, reason, rule.decision.rule, 3, rule.decision.channels)
        return plain

    def _ruled(self, facts: Facts) -> Decision | None:
        for rule in self._deny:
            if rule.applies(facts):
                return rule.decision
        asked: Decision | None = None
        for rule in self._ask:
            if rule.applies(facts):
                asked = rule.decision if asked is None else joined(asked, rule.decision)
        if asked is not None:
            return asked
        for rule in self._allow:
            if rule.applies(facts):
                return rule.decision
        return None

    def _cell(self, facts: Facts) -> Decision:
        tool = facts.tool
        key = (facts.effects, tool.origin, tool.phase)
        found = self._cells.get(key)
        if found is None:
            found = self.persona.table(tool, facts.effects) or self.persona.silence(self.tool)
            self._cells[key] = found
        return found


def joined(first: Decision, second: Decision) -> Decision:
    """The stricter of two; two asks need an answer from a channel that both accept."""
    if first.verdict is not Verdict.ASK or second.verdict is not Verdict.ASK:
        return first.stricter(second)
    if not first.channels or not second.channels:
        return first if first.channels or not second.channels else second
    both = tuple(channel for channel in first.channels if channel in second.channels)
    if both:
        return Decision(first.verdict, first.reason, first.rule, first.step, both)
    reason = f"{first.rule} and {second.rule} demand answers from different channels, so nobody can answer"
    return Decision(Verdict.DENY, reason, first.rule, first.step)


SCAN_DEFAULTS: Mapping[FindingKind, Word] = {"secret": "ask", "payload": "deny", "hidden": "ask"}
SCAN_STEP = 7


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
            return (said, "scan") if said is not None else (SCAN_DEFAULTS[kind], "scan, by default")

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
            said = Decision(
                Verdict(word), f"{who}: {finding.kind} is {word}", f"scan:{finding.kind}", SCAN_STEP
            )
        yield said


def _ruled(facts: Facts, persona: str, rules: Sequence[Rule]) -> Decision | None:
    fitting = [rule.decision for rule in rules if not rule.misfit(persona, facts)]
    if not fitting:
        return None
    strictest = max(decision.verdict.strictness for decision in fitting)
    answer = reduce(joined, (one for one in fitting if one.verdict.strictness == strictest))
    return replace(answer, step=SCAN_STEP)


def tightened(decision: Decision, found: Sequence[tuple[Finding, Decision]]) -> Decision:
    """The call's decision and what its findings say: the strictest, with every reason that is as strict."""
    worst = max((said.verdict.strictness for _, said in found), default=0)
    if worst < Verdict.ASK.strictness or worst < decision.verdict.strictness:
        return decision
    if decision.verdict is Verdict.DENY:
        return decision
    speaking = [(finding, said) for finding, said in found if said.verdict.strictness == worst]
    rules = list(dict.fromkeys(said.rule for _, said in speaking))
    answer = reduce(joined, (said for _, said in speaking))
    reason = f"found in what would be written: {named([finding for finding, _ in speaking])}"
    if decision.verdict is Verdict.ASK and answer.verdict is Verdict.ASK:
        rules.insert(0, decision.rule)
        reason = f"{decision.reason}; {reason}"
        answer = joined(answer, decision)
    if answer.verdict is Verdict.DENY and worst < Verdict.DENY.strictness:
        return replace(answer, step=SCAN_STEP)  # no channel can answer for all that asks
    singly = answer.verdict is Verdict.ASK
    return Decision(answer.verdict, reason, "+".join(rules), SCAN_STEP, answer.channels, singly)
