"""A user of its own for each job, in root mode: a number that nothing else on the machine has."""

from __future__ import annotations

import os
import random
from pathlib import Path

from toolgate.core.errors import Unavailable

BLOCK = 1024
_LOWEST = 100_000
"""Below are people, services and, usually, the ranges that are given to containers."""


class Uids:
    """A block of numbers chosen at random from all that are mapped here, so that two toolgates do not meet."""

    def __init__(self, first: int, count: int) -> None:
        self._free = list(range(first, first + count))

    @classmethod
    def choose(cls) -> Uids:
        low, high = _range()
        count = min(BLOCK, (high - low) // 4)
        return cls(random.SystemRandom().randrange(low, high - count), count)

    def take(self) -> int:
        """The one that has been free for the longest time."""
        if not self._free:
            raise Unavailable("every user number of this block runs a program", "wait until some have ended")
        return self._free.pop(0)

    def give_back(self, uid: int) -> None:
        """Only when no process of it is left."""
        self._free.append(uid)


def available() -> bool:
    low, high = _range()
    return os.geteuid() == 0 and high - low >= 64


def _range(uid_map: str = "/proc/self/uid_map") -> tuple[int, int]:
    """The largest range of numbers that can be used here; in a container there may be few."""
    extents = [tuple(map(int, line.split())) for line in Path(uid_map).read_text().splitlines()]
    start, _, count = max(extents, key=lambda extent: extent[2])
    end = min(start + count, 1 << 31)
    low = _LOWEST if end > 2 * _LOWEST else start + count // 2
    # The number that stands for nobody, and its neighbours.
    return (low, end) if low > 65534 or end <= 65500 else (low, 65500)
