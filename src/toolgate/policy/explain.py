"""Why a call is decided as it is: every line that was considered, in order, and the one that decided.

The call may be only imagined or long past: `facts_from` makes its facts as the gate does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, cast

from toolgate.core.decision import Decision, Verdict
from toolgate.core.finding import Finding, FindingKind
from toolgate.core.names import HUMAN, Registry
from toolgate.core.paths import MountPath, paths_in
from toolgate.core.ports import Facts
from toolgate.core.records import dataclass, replace
from toolgate.policy.hard import FREE, HUMAN_ONLY, UNTRUSTED, paused, refuse_mounts
from toolgate.policy.held import asked
from toolgate.policy.persona import Persona, joined, judged

if TYPE_CHECKING:
    from toolgate.policy.model import ExampleCall
    from toolgate.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One line of the policy, asked about one call."""

    persona: str
    step: int
    text: str
    verdict: Verdict | None
    """What it says; None if it does not apply."""
    why: str
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    facts: Facts
    decision: Decision
    lines: tuple[ExplainedStep, ...]


def explain(policy: Policy, facts: Facts) -> Explanation:
    """Walks every line without stopping at the first, so it can be compared with `Policy.decide`."""
    if facts.persona not in policy.personas:
        decision = policy.decide(facts)
        return Explanation(
            facts,
            decision,
            (ExplainedStep(facts.persona, 6, "unknown persona", Verdict.DENY, decision.reason, True),),
        )
    answers = [_answer(policy, facts, member) for member in policy.line(facts.persona)]
    decision = _strictest([answer.decision for answer in answers])
    lines = [line for answer in answers for line in answer.lines(decision)]
    final = policy.profiled(decision, facts.tool) if decision.step != 1 else decision
    if final is not decision:
        lines = [replace(line, decided=False) for line in lines]
        line = "a tool that always asks" if facts.tool.asks else "profile manifest"
        lines.append(ExplainedStep(facts.persona, 3, line, final.verdict, final.reason, True))
    holding = policy.holding(facts) if decision.step != 1 else []
    if (held := asked(final, holding)) is not final:
        lines = [replace(line, decided=False) for line in lines]
        lines.append(
            ExplainedStep(facts.persona, 1, "files that toolgate runs", held.verdict, held.reason, True)
        )
        final = held
    if facts.findings and final.verdict is not Verdict.DENY:
        lines, final = _found(policy, facts, lines, final)
    elif facts.tool.plan is not None and facts.effects.writes:
        lines += [_scanned(policy, member.name) for member in policy.line(facts.persona)]
    return Explanation(facts, final, tuple(lines))


def _scanned(policy: Policy, persona: str) -> ExplainedStep:
    """What would happen if the scan of the content, which is not known here, found something."""
    words = policy.words[persona].described()
    why = "if something is found: " + ", ".join(f"{kind} is {word}" for kind, word in words.items())
    names = [rule.name for rule in policy.finding_rules if rule.names(persona)]
    return ExplainedStep(
        persona, 7, "scan", None, why + (f"; first the rules {', '.join(names)}" if names else "")
    )


def _found(
    policy: Policy, facts: Facts, lines: list[ExplainedStep], decision: Decision
) -> tuple[list[ExplainedStep], Decision]:
    final = policy.found(facts, decision)
    changed = final is not decision
    if changed and final.verdict is not decision.verdict:
        lines = [replace(line, decided=False) for line in lines]
    for member in policy.line(facts.persona):
        words = policy.words[member.name]
        each = judged(facts, member.name, policy.finding_rules, words)
        for finding, said in zip(facts.findings, each, strict=True):
            decided = changed and said.verdict is final.verdict
            text = f"scan: {finding.word} at {finding.where}"
            lines.append(ExplainedStep(member.name, 7, text, said.verdict, said.reason, decided))
    return lines, final


def _strictest(decisions: list[Decision]) -> Decision:
    """A hard block of any of them comes before everything else; then the strictest."""
    hard = [decision for decision in decisions if decision.step == 1]
    if hard:
        return hard[0]
    return reduce(joined, decisions)


Considered = tuple[ExplainedStep, Decision | None]


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """What one persona of a line gets, by itself."""

    considered: list[Considered]
    decision: Decision
    made_by: set[int]

    def lines(self, final: Decision) -> Iterator[ExplainedStep]:
        """Marked as deciding where this answer is the one that was taken."""
        taken = self.decision.rule == final.rule or self.decision == final
        for index, (line, _) in enumerate(self.considered):
            yield replace(line, decided=taken and index in self.made_by)


def _answer(policy: Policy, facts: Facts, member: Persona) -> PolicyAnswer:
    considered = [*_hard(policy, facts, member), *_soft(policy, facts, member)]
    return PolicyAnswer(considered, *_first(considered))


def _first(considered: list[Considered]) -> tuple[Decision, set[int]]:
    """The decision of the first step that speaks, and which lines made it."""
    step = min(line.step for line, decision in considered if decision is not None)
    spoken = [
        (index, said)
        for index, (line, said) in enumerate(considered)
        if said is not None and line.step == step
    ]
    strictest = (
        max(said.verdict.strictness for _, said in spoken) if step == 3 else spoken[0][1].verdict.strictness
    )
    chosen = [(index, said) for index, said in spoken if said.verdict.strictness == strictest]
    decision = chosen[0][1]
    if step != 3 or decision.verdict is not Verdict.ASK:
        return decision, {chosen[0][0]}
    return reduce(joined, (said for _, said in chosen)), {index for index, _ in chosen}


def _line(member: Persona, step: int, text: str, said: Decision | None, silent: str) -> Considered:
    return ExplainedStep(
        member.name, step, text, said.verdict if said else None, said.reason if said else silent
    ), said


def _hard(policy: Policy, facts: Facts, member: Persona) -> Iterator[Considered]:
    names = [one.name for one in policy.line(member.name)]
    yield _line(member, 1, "paused", paused(facts.paused, names), "nobody concerned is paused")
    yield _line(member, 1, "free tools", FREE if facts.tool.free else None, f"{facts.tool.name} is not free")
    yield _line(member, 1, "trust", None if policy.trusted else UNTRUSTED, "the project is trusted")
    if facts.tool.human:
        barred = None if facts.persona == HUMAN else HUMAN_ONLY
        yield _line(member, 1, "for humans only", barred, "a human asks")
    refusal = refuse_mounts(facts.paths, facts.effects, policy.mounts, member.mounts, member.sees)
    said = refusal.decision if refusal else None
    yield _line(member, 1, "mounts and blocked names", said, "nothing about its paths is blocked")


def _soft(policy: Policy, facts: Facts, member: Persona) -> Iterator[Considered]:
    tool = facts.tool.name
    yield _line(member, 2, f"deny of {member.name}", member.denies(tool), _globs(member.deny))
    for rule in policy.rules:
        misfit = rule.misfit(member.name, facts)
        yield _line(
            member, 3, f"rule {rule.name} ({rule.verdict})", None if misfit else rule.decision, misfit
        )
    yield _line(member, 4, f"allow of {member.name}", member.allows(tool), _globs(member.allow))
    said = member.table(facts.tool, facts.effects)
    text = f"phase {member.phase}" if member.phase else "phase"
    yield _line(member, 5, text, said, f"{member.name} has no phase")
    yield _line(member, 6, "silence", member.silence(tool), "")


def _globs(globs: tuple[str, ...]) -> str:
    return f"is about {', '.join(globs)}" if globs else "is empty"


FactsFor = Callable[["ExampleCall"], Facts]


def facts_from(registry: Registry) -> FactsFor:
    """Resolves, validates and defaults a call as the gate does. Raises CallError for one that could not be made."""

    def facts_for(call: ExampleCall) -> Facts:
        tool = registry.resolve(call.tool)
        given = tool.validate(call.args)
        args = tool.dump_args(given)
        paths = tuple(paths_in(vars(given)))
        if tool.paths_of is not None:
            paths += tuple(tool.paths_of(given))
        findings = tuple(_imagined(word, paths) for word in call.findings)
        effects = tool.effects_for(args)
        changed = paths if tool.plan is not None and effects.writes else None  # as far as its arguments tell
        return Facts(call.persona, tool, args, effects, paths, {}, findings, changed)

    return facts_for


def _imagined(word: str, paths: Sequence[MountPath]) -> Finding:
    kind, _, rule = word.partition(":")
    where = paths[0] if paths else MountPath("project:.")
    return Finding(cast(FindingKind, kind), rule or "any", where, 0, 0, "")
