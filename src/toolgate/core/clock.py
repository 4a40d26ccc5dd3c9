"""Time as the gate sees it: microseconds since 1970, from a clock that is handed in."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

SECOND = 1_000_000


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970."""
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000


def iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
