"""Log messages of servers: a stranger's words, so few, small, harmless to show, and under the server's own name."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.core.display import visible
from toolgate.features.servers.results import Scrub, cleaned, defused

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least severe."""
LONGEST = 4000
"""Characters of a message; of one that is not a text, of its JSON."""
LARGEST = 64 * 1024
"""Of one that is longer still not even the beginning is passed on: looking for secrets in it takes too long."""
LONGEST_NAME = 80
BURST, A_SECOND = 100, 10.0
"""Messages of one call that are passed on at once, and after that each second."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a server logged during a call."""

    source: str
    level: str
    logger: str
    """Begins with the server's name: nobody can pose as toolgate or as another server."""
    data: Any


def wanted(level: str, least: str) -> bool:
    return least in LEVELS and level in LEVELS and LEVELS.index(level) >= LEVELS.index(least)


def line(source: str, level: str, logger: str | None, data: Any, scrub: Scrub) -> LogLine:
    own = visible(scrub(logger))[:LONGEST_NAME] if logger and len(logger) <= LONGEST else ""
    return LogLine(source, level, f"{source}/{own}" if own else source, _small(data, scrub))


def _small(data: Any, scrub: Scrub) -> Any:
    if not isinstance(data, str):
        try:
            spelled = orjson.dumps(data).decode()
        except (orjson.JSONEncodeError, RecursionError):
            spelled = str(data)
        if len(spelled) <= LONGEST:
            return cleaned(data, scrub)
        data = spelled
    if len(data) > LARGEST:
        return f"[toolgate: a message of {len(data):,} characters is left out]"
    text = defused(scrub(data))  # and cut only then: half a secret would not be found
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… [cut by toolgate]"


class Allowance:
    """So many at once, and so many a second from then on."""

    def __init__(self, burst: float = BURST, a_second: float = A_SECOND) -> None:
        self._burst, self._rate = burst, a_second
        self._left, self._at = burst, time.monotonic()
        self.missed = 0
        """Since the last that was let through."""

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            self.missed += 1
            return False
        self._left -= 1
        return True

    def told(self) -> int:
        """How many were left out before this one; asked once."""
        missed, self.missed = self.missed, 0
        return missed
