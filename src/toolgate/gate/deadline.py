"""A time limit on what the current task awaits: `asyncio.timeout`, for calls that almost never reach it.

It stands on the path of every call, where a timer of its own costs as much as a commit's statements. So each event
loop has one watch with one timer, set to the earliest deadline. The rules are asyncio's: the task is cancelled at
the deadline, and only that cancellation becomes Late; one from outside stays one.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Generator
from types import CoroutineType, TracebackType, coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Late(Exception):
    """The deadline was reached. Not a TimeoutError, which a tool may raise for reasons of its own."""


@coroutine
def within(seconds: float, work: Awaitable[T]) -> Generator[Any, Any, T]:
    """What `work` comes to, or Late. It is watched from where it first waits: what never waits needs no watch."""
    begun = time.monotonic()
    steps = work.__await__() if type(work) is CoroutineType else _awaited(work).__await__()
    try:
        waits_for = next(steps)
        with Deadline(begun + seconds - time.monotonic()):
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(sent)
    except StopIteration as done:
        value: T = done.value
        return value


async def _awaited(work: Awaitable[T]) -> T:
    """Others know only how to be asked, and not how to be told of an error."""
    return await work


class Deadline:
    __slots__ = ("_asked_before", "_hit", "_task", "_watch", "at")

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        self._task = task
        self._hit = False
        self._asked_before = task.cancelling()
        self._watch = watch = _watch_of(task.get_loop())
        self.at = watch.loop.time() + seconds
        watch.waiting[self] = None
        if self.at < watch.rings_at:
            watch.set(self.at)

    def strike(self) -> None:
        self._hit = True
        self._task.cancel()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.waiting.pop(self, None)
        if self._hit and self._task.uncancel() <= self._asked_before and kind is asyncio.CancelledError:
            raise Late from error


class _Watch:
    """The deadlines of one event loop. Its timer may ring for one that was met long ago, and finds nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: dict[Deadline, None] = {}
        self.rings_at = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.rings_at = at
        self._timer = self.loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._timer, self.rings_at = None, math.inf
        now = self.loop.time()
        for deadline in [deadline for deadline in self.waiting if deadline.at <= now]:
            del self.waiting[deadline]
            deadline.strike()
        if self.waiting:
            self.set(min(deadline.at for deadline in self.waiting))


_here = threading.local()


def _watch_of(loop: asyncio.AbstractEventLoop) -> _Watch:
    watch: _Watch | None = getattr(_here, "watch", None)
    if watch is None or watch.loop is not loop:
        watch = _here.watch = _Watch(loop)
    return watch
