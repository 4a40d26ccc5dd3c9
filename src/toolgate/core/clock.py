"""Time as the gate sees it: microseconds since 1970, from a clock that is handed in."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

from toolgate.core.late_pattern import late_pattern

SECOND = 1_000_000
_SPAN = late_pattern(r"(\d{1,9})\s*(s|m|min|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970."""
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000


def iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def span_of(text: str) -> int | None:
    """The microseconds of `10m` or `2h`, as people write how long ago something was; None for other words."""
    found = _SPAN.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2]] * SECOND if found else None
