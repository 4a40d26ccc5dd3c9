"""What can be wrong between the parts of a policy, each part being right by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from toolgate.core.records import dataclass
from toolgate.policy.globs import text_glob
from toolgate.policy.limits import Place, RateLimits
from toolgate.policy.values import DEFAULT_USER, Flaw

if TYPE_CHECKING:
    from toolgate.policy.model import ExampleSpec, LimitsSpec, MountSpec, PersonaSpec, PolicySpec, RuleSpec

WILD = frozenset("*?[{")
GENERATIONS = 50
"""Of one persona and its parents. A file may name thousands, and every load walks all their lines."""
COMPARED, LISTED = 200, 20
"""Names that a wrong one is compared with, and that are listed where none is near."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a Policy is made of."""

    personas: Mapping[str, PersonaSpec]
    mounts: Mapping[str, MountSpec]
    policy: PolicySpec
    limits: LimitsSpec


def rule_names(rules: Iterable[RuleSpec]) -> list[str]:
    return [rule.name or f"rule-{number}" for number, rule in enumerate(rules, start=1)]


def lineage(name: str, personas: Mapping[str, PersonaSpec]) -> tuple[str, ...]:
    """A persona followed by its parents; stops where a parent is unknown, comes again or is one too many."""
    found = [name]
    parent = personas[name].parent
    while parent is not None and parent in personas and parent not in found and len(found) < GENERATIONS:
        found.append(parent)
        parent = personas[parent].parent
    return tuple(found)


def flaws(parts: Parts) -> Iterator[Flaw]:
    yield from _personas(parts)
    yield from _rules(parts)
    yield from _examples(parts)
    yield from RateLimits(parts.limits, parts.personas).flaws()


def _near(name: str, known: Iterable[str], what: str) -> str:
    names = list(islice(known, COMPARED))
    import difflib

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean `{near[0]}`?"
    more = ", …" if len(names) > LISTED else ""
    return f"the {what} are: {', '.join(names[:LISTED]) or 'none'}{more}"


def _unknown(at: Place, who: str, what: str, name: str, known: Iterable[str]) -> Flaw:
    return Flaw(at, f"{who} the unknown {what} `{name}`", _near(name, known, f"{what}s"))


def _personas(parts: Parts) -> Iterator[Flaw]:
    for name, spec in parts.personas.items():
        if spec.parent is not None and spec.parent not in parts.personas:
            fix = _near(spec.parent, parts.personas, "personas")
            yield Flaw(("personas", name, "parent"), f"{name} has the unknown parent `{spec.parent}`", fix)
        line = lineage(name, parts.personas)
        again = parts.personas[line[-1]].parent
        if again in line:
            chain = " → ".join((*line, str(again)))
            yield Flaw(
                ("personas", name, "parent"), f"the parents of {name} lead in a circle: {chain}", "cut it"
            )
        elif again in parts.personas:
            told = f"{name} has {GENERATIONS} parents or more, one above the other"
            yield Flaw(("personas", name, "parent"), told, "cut the line")
        yield from _user(name, [parts.personas[member] for member in line])
        for index, mount in enumerate(spec.mounts or ()):
            if mount not in parts.mounts:
                yield _unknown(
                    ("personas", name, "mounts", index), f"{name} uses", "mount", mount, parts.mounts
                )


def _user(name: str, line: Sequence[PersonaSpec]) -> Iterator[Flaw]:
    """A subagent never gets more than its parent, so it has no user but the parent's."""
    above = next((spec.user for spec in line[1:] if spec.user is not None), DEFAULT_USER)
    if line[1:] and line[0].user not in (None, above):
        told = f"{name} names the user `{line[0].user}`, its parent has `{above}`"
        yield Flaw(("personas", name, "user"), told, "leave it out: a subagent has its parent's user")


def _rules(parts: Parts) -> Iterator[Flaw]:
    seen: set[str] = set()
    for index, (name, rule) in enumerate(
        zip(rule_names(parts.policy.rules), parts.policy.rules, strict=True)
    ):
        at = ("policy", "rules", index)
        if name in seen:
            yield Flaw((*at, "name"), f"two rules are called `{name}`", "rename one of them")
        seen.add(name)
        who = f"the rule {name} is about"
        for persona in rule.persona or ():
            if not any(map(text_glob(persona).matches, parts.personas)):
                yield _unknown((*at, "persona"), who, "persona", persona, parts.personas)
        for mount in (rule.when.mount if rule.when else None) or ():
            if mount not in parts.mounts:
                yield _unknown((*at, "when", "mount"), who, "mount", mount, parts.mounts)
        for glob in (rule.when.path if rule.when else None) or ():
            prefix, colon, _ = glob.partition(":")
            if colon and prefix != "*" and prefix not in parts.mounts:
                yield _unknown((*at, "when", "path"), who, "mount", prefix, parts.mounts)


def _examples(parts: Parts) -> Iterator[Flaw]:
    places: list[tuple[Place, ExampleSpec, str]] = [
        (("policy", "examples", index), example, "") for index, example in enumerate(parts.policy.examples)
    ]
    for number, rule in enumerate(parts.policy.rules):
        for index, example in enumerate(rule.examples):
            places.append((("policy", "rules", number, "examples", index), example, only_persona(rule)))
    for at, example, usual in places:
        persona = example.call.persona or usual
        if not persona:
            yield Flaw((*at, "call"), "the example does not say whose call it is", "add `persona`")
        elif persona not in parts.personas:
            yield _unknown((*at, "call"), "the example is about", "persona", persona, parts.personas)


def only_persona(rule: RuleSpec) -> str:
    """The persona an example beside this rule is about, if the rule names exactly one."""
    names = rule.persona or ()
    return names[0] if len(names) == 1 and WILD.isdisjoint(names[0]) else ""
