"""Policy: facts about a call in, one Decision out. The same facts always give the same answer.

The six steps are in ORDER; `decide` follows them for the persona and for each of its parents, and the strictest
of those answers is the decision. What depends only on persona and tool name is worked out once and kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from toolgate.core.canonical import digest, sha256
from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import ConfigError, NotAllowed
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts, Window
from toolgate.core.records import replace
from toolgate.core.tool import Tool
from toolgate.feature import KINDS, MountKind
from toolgate.policy.checks import Parts, flaws, lineage, rule_names
from toolgate.policy.hard import (
    FREE,
    HUMAN_ONLY,
    UNTRUSTED,
    MountRules,
    Named,
    paused,
    refuse_mounts,
    writes_files,
)
from toolgate.policy.held import Held, HeldPlace, asked
from toolgate.policy.limits import RateLimits
from toolgate.policy.persona import Persona, PersonaRights, Words, joined, judged, tightened
from toolgate.policy.rules import Rule
from toolgate.policy.values import plain

if TYPE_CHECKING:
    from toolgate.policy.explain import Explanation
    from toolgate.policy.model import LimitsSpec, MountSpec, PersonaSpec, PolicySpec, ScanSpec

ORDER: tuple[tuple[int, str, str], ...] = (
    (
        1,
        "hard blocks",
        "mount rules, blocked names, garden contracts, paused persona: refuse; nothing overrides them",
    ),
    (2, "deny of the persona", "`deny` of the persona or of any of its parents"),
    (3, "policy.rules", "any matching deny, else any matching ask, else any matching allow"),
    (4, "allow of the persona", "`allow` of the persona"),
    (5, "phase", "the table of its phase"),
    (6, "silence", "deny"),
)
_REMEMBERED = 8192
MANIFEST = Decision(Verdict.ASK, "the profile manifest asks for every fs.* call", "profile:manifest", 3)


ALWAYS = Decision(Verdict.ASK, "this tool asks each time, whatever allows it", "hard:asks", 3)


def order_markdown() -> str:
    """The order as the documentation prints it."""
    return "\n".join(f"{number}. **{name}**: {sentence}" for number, name, sentence in ORDER)


class Policy:
    """Implements `core.ports.Rules`."""

    def __init__(
        self,
        personas: Mapping[str, PersonaSpec],
        mounts: Mapping[str, MountSpec],
        policy: PolicySpec | None = None,
        limits: LimitsSpec | None = None,
        *,
        trusted: bool = False,
        named: Named | None = None,
        held: Held | None = None,
        scan: ScanSpec | None = None,
        kinds: Mapping[str, MountKind] = KINDS,
    ) -> None:
        if policy is None or limits is None or scan is None:
            from toolgate.policy.model import LimitsSpec, PolicySpec, ScanSpec

            policy, limits, scan = policy or PolicySpec(), limits or LimitsSpec(), scan or ScanSpec()
        self.parts = Parts(personas, mounts, policy, limits)
        flaw = next(flaws(self.parts), None)
        if flaw is not None:
            raise ConfigError(f"{'.'.join(map(str, flaw.at))}: {flaw.message}", flaw.fix)
        self.trusted = trusted
        specs = self.parts.policy.rules
        made = [Rule(spec, name) for spec, name in zip(specs, rule_names(specs), strict=True)]
        self.all_rules = tuple(made)
        self.rules = tuple(rule for rule in made if not rule.about_findings)
        self.finding_rules = tuple(rule for rule in made if rule.about_findings)
        self.scan = scan
        self.named = named or Named()
        self.held = held or Held()
        self.mounts = MountRules.all_of(mounts, self.named, self.held, kinds)
        self.manifest = self.parts.policy.profile == "manifest"
        whole = [
            *(kind.name for kind in kinds.values() if kind.whole),
            *(name for name, rules in self.mounts.items() if rules.kind.whole),
        ]
        self.personas = {name: Persona.of(name, personas, whole) for name in personas}
        self._lines = {
            name: tuple(self.personas[member] for member in lineage(name, personas)) for name in personas
        }
        self.words = {
            name: Words.of([(one, personas[one]) for one in lineage(name, personas)], self.scan)
            for name in personas
        }
        self._limits = RateLimits(self.parts.limits, personas)
        self._standings: dict[tuple[str, str], tuple[PersonaRights, ...]] = {}
        self._clear: set[tuple[str, bool, str]] = set()
        self._rights: dict[str, str] = {}
        self._plain: dict[tuple[str, str], Decision] = {}
        self._windows: dict[tuple[str, str, tuple[str, ...]], tuple[Window, ...]] = {}
        self.fingerprint = sha256(json.dumps(self._described(), sort_keys=True))

    def persona(self, name: str) -> Persona:
        found = self.personas.get(name)
        if found is None:
            raise NotAllowed(f"there is no persona {name[:80]!r}", f"the personas are: {self.listed()}")
        return found

    def foreign(self, persona: str) -> Callable[[str, str], bool] | None:
        """Tells of a recorded persona and what was recorded of it whether this persona may not see it: another user's, or
        about a part of a mount that is another user's. None for one who sees everything."""
        viewer = self.personas.get(persona)
        scopes = [(name, rules.kind.scope) for name, rules in self.mounts.items() if rules.kind.scope]
        if viewer is None or viewer.sees is None:
            return None
        others = {one.name for one in self.personas.values() if one.sees not in (None, viewer.sees)}
        if not scopes:
            return (lambda who, _: who in others) if others else None
        user = re.escape(viewer.sees)
        paths = [
            f'(?:{name}:|"){scope.format(user=f"(?!{user}(?![A-Za-z0-9_.-]))")}[^/"]'
            for name, scope in scopes
        ]
        other = re.compile("|".join(paths))
        return lambda who, body: who in others or other.search(body) is not None

    def listed(self) -> str:
        return ", ".join(name for name in self.personas if name != HUMAN) or "none"

    def line(self, name: str) -> tuple[Persona, ...]:
        """A persona followed by its parents."""
        self.persona(name)
        return self._lines[name]

    def rights(self, persona: str) -> str:
        found = self._rights.get(persona)
        if found is None:
            line = self.line(persona)
            scans = [self.words[member.name].described() for member in line]
            found = self._rights[persona] = digest([[member.described() for member in line], scans])
        return found

    @property
    def limits_effects(self) -> bool:
        return self._limits.by_effect

    @property
    def earns(self) -> Mapping[str, int]:
        return {name: spec.every for name, spec in self._limits.adaptive.items()}

    def windows(self, persona: str, tool: str, writes: tuple[str, ...] = ()) -> tuple[Window, ...]:
        key = (persona, tool, writes)
        found = self._windows.get(key)
        if found is None:
            names = tuple(member.name for member in self.line(persona))
            found = self._windows[key] = self._limits.windows(names, tool, writes)
        return found

    def decide(self, facts: Facts) -> Decision:
        if facts.findings:
            decision = self.decide(replace(facts, findings=()))
            return self.found(facts, decision) if decision.verdict is not Verdict.DENY else decision
        line = self._lines.get(facts.persona)
        if line is None:
            return self._stranger(facts.persona)
        plain = not facts.paths and not facts.paused and facts.effects is facts.tool.effects
        if plain:
            known = self._plain.get((facts.persona, facts.tool.definition))
            if known is not None:
                return known
        early = self._early(facts, line)
        if early is not None:
            return early
        standings = self._standings.get((facts.persona, facts.tool.name)) or self._stand(facts, line)
        decision = standings[0].decide(facts)
        for standing in standings[1:]:
            decision = joined(decision, standing.decide(facts))
        decision = self.profiled(decision, facts.tool)
        if self.held.places:
            decision = asked(decision, self.holding(facts))
        if plain and not any(standing.conditional for standing in standings):
            self._plain[facts.persona, facts.tool.definition] = (
                decision  # nothing about a call could change it
            )
        return decision

    def outlook(self, persona: str, tool: Tool) -> Decision:
        """What this persona may expect of a tool: for lists of tools, where no arguments are known yet."""
        facts = Facts(persona, tool, {}, tool.effects)
        decision = self.decide(facts)
        line = self._lines.get(persona)
        if decision.verdict is not Verdict.DENY or line is None or decision.step == 1:
            return decision
        standings = self._standings.get((persona, tool.name)) or self._stand(facts, line)
        hoped = reduce(joined, (standing.outlook(facts) for standing in standings))
        return self.profiled(hoped, tool)

    def found(self, facts: Facts, decision: Decision) -> Decision:
        """What the content scan found makes it stricter, for the persona and for each of its parents."""
        said: list[Decision] = []
        for member in self.line(facts.persona):
            each = judged(facts, member.name, self.finding_rules, self.words[member.name])
            said = [joined(*pair) for pair in zip(said, each, strict=True)] if said else list(each)
        return tightened(decision, list(zip(facts.findings, said, strict=True)))

    def explain(self, facts: Facts) -> Explanation:
        from toolgate.policy.explain import explain  # for those who ask why

        return explain(self, facts)

    def holds(self, paths: Sequence[MountPath]) -> bool:
        return bool(self.held.among(paths))

    def holding(self, facts: Facts) -> list[tuple[MountPath, HeldPlace]]:
        """The held files that this call writes: those of its Change, or all that it names where it plans none."""
        if facts.changed is not None:
            return self.held.among(facts.changed)
        unplanned = facts.tool.plan is None and writes_files(facts.effects)
        return self.held.among(facts.paths) if unplanned else []

    def profiled(self, decision: Decision, tool: Tool) -> Decision:
        """The profile `manifest`, and a tool that always asks, tighten an allow; they never loosen a deny."""
        if decision.verdict is not Verdict.ALLOW:
            return decision
        if tool.asks:
            return ALWAYS
        return MANIFEST if self.manifest and tool.name.startswith("fs.") else decision

    def _early(self, facts: Facts, line: tuple[Persona, ...]) -> Decision | None:
        """Step 1, with its one exception: tools that describe tools are free."""
        if facts.paused:
            stopped = paused(facts.paused, [member.name for member in line])
            if stopped is not None:
                return stopped
        if facts.tool.free:
            return FREE
        if not self.trusted:
            return UNTRUSTED
        if facts.tool.human and facts.persona != HUMAN:
            return HUMAN_ONLY
        return self._mounts(facts, line)

    def _mounts(self, facts: Facts, line: tuple[Persona, ...]) -> Decision | None:
        """As `refuse_mounts` for each of the line; paths that nothing refuses are remembered."""
        written = writes_files(facts.effects)
        clear, persona = self._clear, facts.persona
        new = [path for path in facts.paths if (persona, written, path) not in clear]
        if facts.paths and not new:
            return None
        for member in line:
            refusal = refuse_mounts(facts.paths, facts.effects, self.mounts, member.mounts, member.sees)
            if refusal is not None:
                return refusal.decision
        if len(clear) > _REMEMBERED:
            clear.clear()
        clear.update((persona, written, path) for path in new)
        return None

    def _stranger(self, name: str) -> Decision:
        known = self.listed()
        return Decision(
            Verdict.DENY, f"there is no persona {name[:80]!r}; the personas are: {known}", "silence", 6,
            fix="call as one of them, or let the owner add it to `personas` in toolgate.yaml",
        )  # fmt: skip

    def _stand(self, facts: Facts, line: tuple[Persona, ...]) -> tuple[PersonaRights, ...]:
        tool = facts.tool.name
        found = tuple(PersonaRights(member, tool, self.rules) for member in line)
        self._standings[facts.persona, tool] = found
        return found

    def _described(self) -> dict[str, object]:
        """Everything in the file that can influence a decision; examples and limits cannot. What toolgate itself runs is no
        part of it: that differs between processes, and is never looser than the file."""
        return {
            "trusted": self.trusted,
            "personas": {name: plain(spec, {"limits"}) for name, spec in self.parts.personas.items()},
            "mounts": {name: plain(spec) for name, spec in self.parts.mounts.items()},
            "named": self.named.described(),
            "scan": plain(self.scan),
            # `equals: null` says something and no `equals` does not
            "policy": plain(self.parts.policy, {"examples"}, said=True),
        }
