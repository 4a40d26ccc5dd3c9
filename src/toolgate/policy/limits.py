"""Limits: whose calls are counted in which sliding windows.

A call counts at once for everybody, for its persona and each parent, and for its persona on that tool; per
minute and per hour. `burst` shapes: at most that many calls in the time in which `per_minute` allows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolgate.core.ports import Window
from toolgate.policy.globs import tool_glob
from toolgate.policy.model import Flaw, LimitsSpec, PersonaSpec, RateSpec

_made = RateSpec.model_construct
"""Of numbers that are known to be right: what is checked is built first, which takes longer than reading the file."""
PROFILES: dict[str, LimitsSpec] = {
    "roomy": LimitsSpec.model_construct(
        profile="roomy",
        everybody=_made(per_minute=3000, per_hour=60_000),
        persona=_made(per_minute=1200, per_hour=30_000),
    ),
    "strict": LimitsSpec.model_construct(
        profile="strict",
        everybody=_made(per_minute=100, per_hour=2000),
        persona=_made(per_minute=10, per_hour=200, burst=3),
        tool={
            "code.read": _made(per_minute=5),
            "code.search": _made(per_minute=3),
            "exec.python": _made(per_minute=2),
        },
    ),
}


class RateLimits:
    """The limits of one project: a profile, overridden field by field."""

    def __init__(self, spec: LimitsSpec, personas: Mapping[str, PersonaSpec]) -> None:
        profile = PROFILES[spec.profile]
        self.everybody = over(profile.everybody, spec.everybody)
        base = over(profile.persona, spec.persona)
        self.personas = {name: over(base, persona.limits) for name, persona in personas.items()}
        keys = {**profile.tool, **spec.tool}
        self.tools = {key: over(profile.tool.get(key, _made()), spec.tool.get(key, _made())) for key in keys}
        self._globs = {key: tool_glob(key) for key in keys}

    def windows(self, lineage: tuple[str, ...], tool: str) -> tuple[Window, ...]:
        """For a persona followed by its parents: a child's calls count for each of them."""
        found = list(_windows("global", "everybody", self.everybody))
        for persona in lineage:
            found += _windows(f"persona/{persona}", persona, self.personas[persona])
            for key, rate in self.tools.items():
                if self._globs[key].matches(tool):
                    found += _windows(f"tool/{persona}/{key}", f"{persona} on {key}", rate)
        return tuple(found)

    def flaws(self) -> Iterator[Flaw]:
        """A burst without the rate that it shapes."""
        places: list[tuple[tuple[str | int, ...], RateSpec]] = [(("limits", "global"), self.everybody)]
        places += [(("personas", name, "limits"), rate) for name, rate in self.personas.items()]
        places += [(("limits", "tool", key), rate) for key, rate in self.tools.items()]
        for at, rate in places:
            if rate.burst is not None and rate.per_minute is None:
                yield Flaw((*at, "burst"), "`burst` needs `per_minute`", "add `per_minute` beside it")


def over(base: RateSpec, own: RateSpec) -> RateSpec:
    """`own` where it says something, else `base`."""
    return _made(
        per_minute=own.per_minute or base.per_minute,
        per_hour=own.per_hour or base.per_hour,
        burst=own.burst or base.burst,
    )


def _windows(scope: str, name: str, rate: RateSpec) -> Iterator[Window]:
    if rate.per_minute is not None:
        if rate.burst is not None and rate.burst < rate.per_minute:
            yield Window(scope, f"{name}, burst", rate.burst, rate.burst * 60 / rate.per_minute)
        yield Window(scope, f"{name}, per minute", rate.per_minute, 60.0)
    if rate.per_hour is not None:
        yield Window(scope, f"{name}, per hour", rate.per_hour, 3600.0)
