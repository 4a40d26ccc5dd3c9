"""Sliding windows over the calls that really started, exact because they are counted inside the transaction."""

from __future__ import annotations

from collections.abc import Sequence

from toolgate.core.clock import SECOND
from toolgate.core.ports import Window
from toolgate.ledger.state import State


def blocked(state: State, windows: Sequence[Window], now: int) -> tuple[Window, int] | None:
    """The window that has no room and how long to wait for it, in microseconds; the longest wait wins."""
    worst: tuple[Window, int] | None = None
    recent = state.recent
    for window in windows:
        times = recent.get(window.scope)
        if times is None or len(times) < window.limit:
            continue
        wait = times[-window.limit] + round(window.seconds * SECOND) - now if window.limit else SECOND * 60
        if wait > 0 and (worst is None or wait > worst[1]):
            worst = (window, wait)
    return worst
