"""A rule of `policy.rules`, compiled.

Deny and ask are generous in what they match, allow is narrow: a deny or ask applies if *any* path, mount, effect
or list element fits, an allow only if there is one and *all* of them fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolgate.core.decision import Decision, Verdict
from toolgate.core.ports import Facts
from toolgate.policy.globs import Net, any_matches, path_glob, text_glob, tool_glob

if TYPE_CHECKING:
    from toolgate.policy.conditions import Condition
    from toolgate.policy.model import EffectsSpec, RuleSpec

Part = tuple[str, Callable[[Facts], bool]]
"""Why the rule does not apply if this fails, and the test."""


class Rule:
    def __init__(self, spec: RuleSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.verdict = Verdict(spec.decision)
        self.reason = spec.reason or f"the rule {name} says {spec.decision}"
        self.decision = Decision(self.verdict, self.reason, f"rule:{name}", 3, spec.channels)
        self._personas = tuple(map(text_glob, spec.persona or ("*",)))
        self._tools = tuple(map(tool_glob, spec.tools or ("*",)))
        self._parts = tuple(self._compile())
        self.conditional = bool(self._parts)
        self.about_findings = spec.when is not None and spec.when.findings is not None

    def about(self, persona: str, tool: str) -> bool:
        """Whether it could speak of this persona and tool at all; the rest depends on the call."""
        return any_matches(self._personas, persona) and any_matches(self._tools, tool)

    def names(self, persona: str) -> bool:
        return any_matches(self._personas, persona)

    def applies(self, facts: Facts) -> bool:
        for _, test in self._parts:  # noqa: SIM110  the hot path: a generator costs more than the test
            if not test(facts):
                return False
        return True

    def misfit(self, persona: str, facts: Facts) -> str:
        """Why it does not apply to this call as this persona; empty if it does."""
        if not any_matches(self._personas, persona):
            return f"is about {', '.join(self.spec.persona or ())}"
        if not any_matches(self._tools, facts.tool.name):
            return f"is about {', '.join(self.spec.tools or ())}"
        return next((why for why, test in self._parts if not test(facts)), "")

    def _compile(self) -> list[Part]:
        parts: list[Part] = []
        strict = self.verdict is not Verdict.ALLOW
        if self.spec.effects is not None:
            parts.append(_effects_part(self.spec.effects, strict))
        when = self.spec.when
        if when is None:
            return parts
        if when.mount is not None:
            parts.append(_mount_part(when.mount, strict))
        if when.path is not None:
            parts.append(_path_part(when.path, strict))
        if when.findings is not None:
            parts.append(_findings_part(when.findings))
        if when.args is not None:
            from toolgate.policy.conditions import Condition  # arguments are compared by few rules
        for name, condition in (when.args or {}).items():
            parts.append((f"the argument {name} does not fit", _holds(Condition(name, condition, strict))))
        return parts


def _holds(condition: Condition) -> Callable[[Facts], bool]:
    return lambda facts: condition.holds(facts.args)


def _effects_part(spec: EffectsSpec, strict: bool) -> Part:
    reads, writes = frozenset(spec.reads), frozenset(spec.writes)
    if strict:
        return (
            "has none of its effects",
            lambda facts: (
                not (reads.isdisjoint(facts.effects.reads) and writes.isdisjoint(facts.effects.writes))
            ),
        )
    return (
        "has other effects too",
        lambda facts: (
            bool(facts.effects.reads or facts.effects.writes)
            and reads.issuperset(facts.effects.reads)
            and writes.issuperset(facts.effects.writes)
        ),
    )


def _mount_part(mounts: tuple[str, ...], strict: bool) -> Part:
    listed = " or ".join(mounts)
    if strict:
        return f"no path in {listed}", lambda facts: any(path.mount in mounts for path in facts.paths)
    return (
        f"not every path is in {listed}",
        lambda facts: bool(facts.paths) and all(path.mount in mounts for path in facts.paths),
    )


def _findings_part(words: tuple[str, ...]) -> Part:
    wanted = frozenset(words)

    def test(facts: Facts) -> bool:
        return any(found.kind in wanted or found.word in wanted for found in facts.findings)

    return f"no finding is {' or '.join(words)}", test


def _path_part(texts: tuple[str, ...], strict: bool) -> Part:
    listed = " or ".join(texts)
    if strict:
        catches = Net(texts).catches
        return f"no path matches {listed}", lambda facts: any(map(catches, facts.paths))
    globs = tuple(map(path_glob, texts))
    return (
        f"not every path matches {listed}",
        lambda facts: (
            bool(facts.paths) and all(any(glob.matches(path) for glob in globs) for path in facts.paths)
        ),
    )
