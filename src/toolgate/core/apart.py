"""Work on large values: in two threads of its own, so that one who sends much waits for themselves.

Not in the threads that tools block in: many large calls would take all of those, and each thread that computes makes
everybody else wait for Python's lock a little longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

LARGE = 128 << 10
"""Characters that are worth a thread: less takes no longer than the way there."""
_LEAVES = frozenset({int, float, bool, type(None)})
_TEXTS, _LISTS = (str, bytes), (list, tuple)
T = TypeVar("T")
V = TypeVarTuple("V")
_threads: ThreadPoolExecutor | None = None


def _fresh_threads() -> None:
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_fresh_threads)


def apart(work: Callable[[*V], T], *values: *V) -> asyncio.Future[T]:
    """What it gives back, while the event loop goes on."""
    global _threads
    import asyncio

    if _threads is None:
        from concurrent.futures import ThreadPoolExecutor

        _threads = ThreadPoolExecutor(2, "large")
    called = partial(copy_context().run, work, *values)
    return asyncio.get_running_loop().run_in_executor(_threads, called)


def large(value: Any) -> bool:
    """Whether there is more text in it than that; looks no further than it must."""
    if type(value) in _LEAVES or (type(value) is str and len(value) <= LARGE):
        return False  # what nearly every call is
    left, waiting = LARGE, [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind in _LEAVES:
            continue
        if isinstance(one, _TEXTS):
            left -= len(one)
        elif isinstance(one, dict):
            left -= len(one)
            waiting.extend(one)
            waiting.extend(one.values())
        elif isinstance(one, _LISTS):
            left -= len(one)
            waiting.extend(one)
        if left < 0:
            return True
    return False
