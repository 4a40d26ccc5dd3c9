"""Budget of a run: tokens, money, time and calls, which one run shares with all its helpers.

It counts and says when it is over. Whoever holds it asks before each step; it stops nothing by itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunLimits:
    """0 means no limit."""

    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    calls: int = 0


@dataclass(slots=True)
class RunSpending:
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    asks: int = 0
    """How often a model was asked."""
    unpriced: int = 0
    """Tokens of models whose price is not known: they are not in `usd`."""

    def add(self, other: RunSpending) -> None:
        self.tokens += other.tokens
        self.usd += other.usd
        self.seconds += other.seconds
        self.calls += other.calls
        self.asks += other.asks
        self.unpriced += other.unpriced

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"usd": round(self.usd, 6), "seconds": round(self.seconds, 3)}


@dataclass(slots=True)
class RunBudget:
    """One for a run and everybody it asks for help: what a child spends, its parent no longer has."""

    limits: RunLimits = field(default_factory=RunLimits)
    spent: RunSpending = field(default_factory=RunSpending)

    def over(self, *, calls: bool = True) -> str:
        """Which limit is reached, in words; empty where none is. Without `calls`: of those that a reply needs."""
        limits, spent = self.limits, self.spent
        for name, most, used, unit in (
            ("tokens", limits.tokens, spent.tokens, "tokens"),
            ("usd", limits.usd, round(spent.usd, 6), "USD"),
            ("seconds", limits.seconds, round(spent.seconds, 3), "s"),
            ("calls", limits.calls if calls else 0, spent.calls, "tool calls"),
        ):
            if most and used >= most:
                return f"{name}: {used:,g} of {most:,g} {unit} are used"
        return ""

    def left(self) -> dict[str, float]:
        """What is left of each limit that there is."""
        limits, spent = asdict(self.limits), asdict(self.spent)
        return {name: max(most - spent[name], 0) for name, most in limits.items() if most}


def tightest(first: RunLimits, second: RunLimits) -> RunLimits:
    """Of two the smaller one in each; no limit is the largest."""
    pairs = ((getattr(first, name), getattr(second, name)) for name in ("tokens", "usd", "seconds", "calls"))
    tokens, usd, seconds, calls = (min(one or other, other or one) for one, other in pairs)
    return RunLimits(int(tokens), usd, seconds, int(calls))
