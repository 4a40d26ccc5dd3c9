"""Sliding windows over the calls that really started, exact because they are counted inside the transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from toolgate.core.clock import SECOND
from toolgate.core.ports import Window
from toolgate.ledger.state import State

_NONE: deque[int] = deque()


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
