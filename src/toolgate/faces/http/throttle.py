"""Wrong tokens are slowed down: so many a minute from one address, so many from all together.

A right token is let in whatever others do: 256 bits are not guessed, and nobody must be able to lock the human out.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

from toolgate.core.errors import RateLimited

WINDOW = 60.0
PER_ADDRESS = 10
GLOBAL = 100
ADDRESSES = 1000


class Throttle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: deque[float] = deque()
        self._by: OrderedDict[str, deque[float]] = OrderedDict()

    def failed(self, address: str) -> None:
        """Count a wrong token; raise once there were too many."""
        mine = self._by.setdefault(address, deque(maxlen=PER_ADDRESS + 1))
        self._by.move_to_end(address)
        while len(self._by) > ADDRESSES:
            self._by.popitem(last=False)
        for times, most in ((mine, PER_ADDRESS), (self._all, GLOBAL)):
            self._count(times, most)

    def _count(self, times: deque[float], most: int) -> None:
        now = self._clock()
        while times and times[0] <= now - WINDOW:
            times.popleft()
        if len(times) >= most:
            wait = max(0.0, times[0] + WINDOW - now)
            raise RateLimited(
                f"there were {most} wrong tokens within a minute",
                "`toolgate token` prints the right one; try again later",
                data={"retry_after_s": round(wait, 1)},
            )
        times.append(now)
