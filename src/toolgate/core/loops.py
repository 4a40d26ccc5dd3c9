"""Coroutines with and without an event loop: a command that only reads or writes a ledger file does not wait for asyncio
to be loaded, which takes as long as all else that it does.

`run` drives a coroutine by hand. One that turns out to need an event loop says so with `need_loop` before it waits for
anything, and goes on in one from there.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def has_loop() -> bool:
    """Whether an event loop runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


class _Need:
    def __await__(self) -> Generator[_Need, None, None]:
        yield self


async def need_loop() -> None:
    """What follows waits, so it goes on in an event loop."""
    if not has_loop():
        await _Need()


def run(work: Coroutine[Any, Any, T], in_loop: Callable[[Coroutine[Any, Any, T]], T] | None = None) -> T:
    """What the coroutine gives back. `in_loop` runs the rest of one that needs an event loop; `asyncio.run` if absent."""
    try:
        asked = work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    if not isinstance(asked, _Need):
        work.close()
        raise RuntimeError("this waits for something, so it must `await need_loop()` before")
    if in_loop is None:
        import asyncio

        in_loop = asyncio.run
    return in_loop(_as_coroutine(_Rest(work)))


async def _as_coroutine(rest: Awaitable[T]) -> T:
    return await rest


class _Rest(Awaitable[T]):
    """A coroutine that has begun, as something to await: Python itself awaits only those that have not."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, T]:
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            try:
                asked = step()
            except StopIteration as end:
                value: T = end.value
                return value
            try:
                yield asked
                step = partial(self._work.send, None)
            except BaseException as error:
                step = partial(self._work.throw, error)
