"""A time limit on what the current task awaits: `asyncio.timeout`, without its bookkeeping for rescheduling.

It stands on the path of every call, where half its cost counts. The rules are asyncio's: the task is cancelled at
the deadline, and only that cancellation becomes Late; one from outside stays one.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Late(Exception):
    """The deadline was reached. Not a TimeoutError, which a tool may raise for reasons of its own."""


class Deadline:
    __slots__ = ("_asked_before", "_handle", "_hit", "_task")

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        self._task = task
        self._hit = False
        self._asked_before = task.cancelling()
        self._handle = task.get_loop().call_later(seconds, self._strike)

    def _strike(self) -> None:
        self._hit = True
        self._task.cancel()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._hit and self._task.uncancel() <= self._asked_before and kind is asyncio.CancelledError:
            raise Late from error
