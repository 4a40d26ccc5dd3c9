"""Timing, and the line of the table that a measurement becomes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Step = Callable[[], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the results: ours beside the peer, and whether the bar holds."""

    what: str
    ours: str
    how: str
    peer: str = "–"
    ratio: float | None = None
    bar: str = "–"
    holds: bool | None = None
    """None where nothing was promised."""

    @property
    def verdict(self) -> Literal["yes", "no", "–"]:
        return "–" if self.holds is None else "yes" if self.holds else "no"


def quantile(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def median(times: Sequence[float]) -> float:
    return quantile(times, 0.5)


async def timed(step: Step) -> float:
    begun = time.perf_counter()
    await step()
    return time.perf_counter() - begun


async def alternate(ours: Step, peer: Step, count: int) -> tuple[list[float], list[float]]:
    """One of ours, one of the peer's, and again: whatever else the machine does hits both alike."""
    mine: list[float] = []
    theirs: list[float] = []
    while len(mine) < count:
        mine.append(await timed(ours))
        theirs.append(await timed(peer))
    return mine, theirs


async def hammer(step: Step, callers: int, seconds: float) -> float:
    """How often a second so many callers get through, each going on as soon as it has its answer."""
    done = 0
    begun = time.perf_counter()

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < begun + seconds:
            await step()
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - begun)


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def millis(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"
