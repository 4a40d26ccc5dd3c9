"""When a server that fails is tried again: later each time, and after many failures only once in a while."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST, LONGEST = 0.5, 60.0
TRIPS_AT = 5


class Breaker:
    """Counts failures in a row. Only an answered call clears them: a server that starts well and dies in every
    call is broken too."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._now = now
        self._chance = chance
        self.failures = 0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= TRIPS_AT

    @property
    def wait(self) -> float:
        """Seconds until the next try; 0 means now. When an open breaker's time is over, one try decides."""
        return max(0.0, self._retry_at - self._now())

    def failed(self) -> None:
        self.failures += 1
        if self.failures == 1:
            return  # it may have been killed by hand: the next call tries at once
        longest = LONGEST if self.is_open else min(LONGEST, FIRST * 2 ** (self.failures - 2))
        self._retry_at = self._now() + longest * (0.5 + self._chance() / 2)

    def worked(self) -> None:
        self.failures, self._retry_at = 0, 0.0
