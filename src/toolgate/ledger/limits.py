"""Sliding windows over the calls that really started, and over the bytes of long rows; exact because they are counted
inside the transaction."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolgate.core.clock import SECOND
from toolgate.core.errors import RateLimited
from toolgate.core.named_tuples import NamedTuple
from toolgate.ledger.state import MINUTE, State

if TYPE_CHECKING:
    from toolgate.core.ports import Window

_NONE: deque[int] = deque()


class Allowance(NamedTuple):
    """What one persona may bring into the database."""

    per_minute: int
    """Bytes of long rows, and of what is kept beside them, in a minute."""
    kept: int
    """Bytes of its open questions beside the journal."""

    def refusal(self, state: State, persona: str, now: int) -> RateLimited | None:
        wait = self.wait(state, persona, now) if persona in state.written else 0
        if not wait:
            return None
        seconds = math.ceil(wait * 1000 / SECOND) / 1000
        return RateLimited(
            f"the calls of {persona} left {state.written_by(persona, now):,} bytes to keep in the last "
            f"minute; limits.journal_bytes.per_minute allows {self.per_minute:,}",
            f"come back in {math.ceil(seconds * 10) / 10:.1f} s, and send less",
            data={"retry_after_s": seconds, "limit": "limits.journal_bytes.per_minute"},
        )

    def check_kept(self, persona: str, used: int) -> None:
        """What a feature keeps of calls in tables of its own, counted there, has once more the same room."""
        if used >= self.per_minute:
            raise RateLimited(
                f"the calls of {persona} left {used:,} bytes to keep in the last minute; "
                f"limits.journal_bytes.per_minute allows {self.per_minute:,}",
                "come back in a minute, and send less",
                data={"retry_after_s": MINUTE / SECOND, "limit": "limits.journal_bytes.per_minute"},
            )

    def wait(self, state: State, persona: str, now: int) -> int:
        """Microseconds until there is room again; 0 if there is."""
        used = state.written_by(persona, now)
        if used < self.per_minute:
            return 0
        for at, size in state.written[persona]:
            used -= size
            if used < self.per_minute:
                return at + MINUTE - now
        return MINUTE


USUAL = Allowance(8 * 1024 * 1024, 64 * 1024 * 1024)


def used_up(window: Window, wait: int) -> RateLimited:
    seconds = math.ceil(wait * 1000 / SECOND) / 1000  # never a moment too early
    return RateLimited(
        f"{window.name} allows {window.limit} calls in {window.seconds:g} s, and they are used up",
        f"come back in {math.ceil(seconds * 10) / 10:.1f} s",
        data={"retry_after_s": seconds, "limit": window.name},
    )


def blocked(state: State, windows: Sequence[Window], now: int) -> tuple[Window, int] | None:
    """The window that has no room and how long to wait for it, in microseconds; the longest wait wins."""
    worst: tuple[Window, int] | None = None
    scope, count, times = "", 0, _NONE
    for window in windows:
        if window.scope is not scope:
            scope = window.scope
            times = state.recent.get(scope, _NONE)
            count = len(times)
        if count < window.limit:
            continue
        wait = times[-window.limit] + round(window.seconds * SECOND) - now if window.limit else SECOND * 60
        if wait > 0 and (worst is None or wait > worst[1]):
            worst = (window, wait)
    return worst
