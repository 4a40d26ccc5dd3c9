"""Limits: whose calls are counted in which sliding windows.

A call counts at once for everybody, for its persona and each parent, for its persona on that tool, and for its persona
on each effect that it has; per minute and per hour. `burst` shapes: at most that many calls in the time in which `per_minute` allows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from toolgate.core.named_tuples import NamedTuple
from toolgate.core.ports import Window
from toolgate.policy.globs import tool_glob
from toolgate.policy.values import Flaw

if TYPE_CHECKING:
    from toolgate.policy.model import AdaptiveSpec, LimitsSpec, PersonaSpec, RateSpec


class Rate(NamedTuple):
    """What holds in the end, field by field; None: no limit."""

    per_minute: int | None = None
    per_hour: int | None = None
    burst: int | None = None


class Profile(NamedTuple):
    everybody: Rate
    persona: Rate
    tool: Mapping[str, Rate] = {}


PROFILES = {
    "roomy": Profile(Rate(3000, 60_000), Rate(1200, 30_000)),
    "strict": Profile(
        Rate(100, 2000),
        Rate(10, 200, burst=3),
        {"code.read": Rate(5), "code.search": Rate(3), "exec.python": Rate(2)},
    ),
}


Named = Callable[[str], str]
"""What a window is called in a refusal, by the field of the rate that it comes from."""
Place = tuple[str | int, ...]


class RateLimits:
    """The limits of one project: a profile, overridden field by field."""

    def __init__(self, spec: LimitsSpec, personas: Mapping[str, PersonaSpec]) -> None:
        profile = PROFILES[spec.profile]
        self.everybody = over(profile.everybody, spec.everybody)
        base = over(profile.persona, spec.persona)
        self.personas = {name: over(base, persona.limits) for name, persona in personas.items()}
        keys = {**profile.tool, **spec.tool}
        self.tools = {key: over(profile.tool.get(key, Rate()), spec.tool.get(key, Rate())) for key in keys}
        self._globs = {key: tool_glob(key) for key in keys}
        own = {name: persona.limits.writes for name, persona in personas.items()}
        self.writes = {
            name: {
                word: (over(spec.writes.get(word, Rate()), mine.get(word, Rate())), mine.get(word))
                for word in {**spec.writes, **mine}
            }
            for name, mine in own.items()
        }
        """By persona and effect: the rate, and what the persona itself says of it."""
        self.adaptive = {
            name: persona.limits.adaptive for name, persona in personas.items() if persona.limits.adaptive
        }
        self.by_effect = any(self.writes.values())
        """Whether the effects of past calls matter at all."""

    def windows(
        self, lineage: tuple[str, ...], tool: str, writes: tuple[str, ...] = ()
    ) -> tuple[Window, ...]:
        """For a persona followed by its parents: a child's calls count for each of them."""
        found = list(_windows("global", _whose("everybody"), self.everybody))
        for persona in lineage:
            rate, most = self.personas[persona], self.adaptive.get(persona)
            found += _windows(f"persona/{persona}", _whose(persona), rate, most)
            for key, rate in self.tools.items():
                if self._globs[key].matches(tool):
                    found += _windows(f"tool/{persona}/{key}", _whose(f"{persona} on {key}"), rate)
            for word in writes:
                if word in self.writes[persona]:
                    rate, own = self.writes[persona][word]
                    found += _windows(f"writes/{persona}/{word}", _setting(persona, word, own), rate)
        return tuple(found)

    def flaws(self) -> Iterator[Flaw]:
        """A burst without the rate that it shapes; a raise of nothing, to less, or to more than twice."""
        for name, most in self.adaptive.items():
            for field in ("per_minute", "per_hour"):
                base, top = getattr(self.personas[name], field), getattr(most, field)
                if top is not None and not (base or 0) < top <= 2 * (base or 0):
                    at_field: Place = ("personas", name, "limits", "adaptive", field)
                    fix = (
                        f"write {base + 1:,} to {2 * base:,}"
                        if base
                        else f"set `{field}` of its limits first"
                    )
                    yield Flaw(
                        at_field, f"{top:,} is no raise of {base or 'no limit'} to at most twice that", fix
                    )
        places: list[tuple[Place, Rate]] = [(("limits", "global"), self.everybody)]
        places += [(("personas", name, "limits"), rate) for name, rate in self.personas.items()]
        places += [(("limits", "tool", key), rate) for key, rate in self.tools.items()]
        for name, words in self.writes.items():
            for word, (rate, own) in words.items():
                at: Place = ("personas", name, "limits") if own else ("limits",)
                places.append(((*at, "writes", word), rate))
        for at, rate in places:
            if rate.burst is not None and rate.per_minute is None:
                yield Flaw((*at, "burst"), "`burst` needs `per_minute`", "add `per_minute` beside it")


def over(base: Rate | RateSpec, own: Rate | RateSpec) -> Rate:
    """`own` where it says something, else `base`."""
    return Rate(own.per_minute or base.per_minute, own.per_hour or base.per_hour, own.burst or base.burst)


def _whose(name: str) -> Named:
    return lambda field: f"{name}, {field.replace('_', ' ')}"


def _setting(persona: str, word: str, own: RateSpec | None) -> Named:
    """The setting itself, so that whoever meets it can look it up and change it."""
    return lambda field: (
        f"personas.{persona}.limits.writes.{word}.{field}"
        if own is not None and getattr(own, field) is not None
        else f"limits.writes.{word}.{field} for {persona}"
    )


def _windows(scope: str, named: Named, rate: Rate, adaptive: AdaptiveSpec | None = None) -> Iterator[Window]:
    minute, hour = (adaptive.per_minute or 0, adaptive.per_hour or 0) if adaptive is not None else (0, 0)
    if rate.per_minute is not None:
        if rate.burst is not None and rate.burst < rate.per_minute:
            seconds = rate.burst * 60 / rate.per_minute
            yield Window(scope, named("burst"), rate.burst, seconds, rate.burst * minute // rate.per_minute)
        yield Window(scope, named("per_minute"), rate.per_minute, 60.0, minute)
    if rate.per_hour is not None:
        yield Window(scope, named("per_hour"), rate.per_hour, 3600.0, hour)
