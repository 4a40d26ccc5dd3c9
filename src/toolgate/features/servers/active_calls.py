"""The calls that are under way at one server, and whose a message of the server's is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolgate.core import context as served
from toolgate.features.servers.elicitation import Caller
from toolgate.features.servers.logs import Allowance

T = TypeVar("T")
LINGERS = 600.0
"""Seconds for which a server may go on with a call that was given up."""


@dataclass(eq=False)
class UnderWay:
    caller: Caller
    context: served.Context
    samplings: int = 0
    """How often the server has wanted a model for it."""
    questions: int = 0
    """How often it has asked the human something."""
    lines: Allowance = field(default_factory=Allowance)
    _asked: set[asyncio.Future[Any]] = field(default_factory=set)

    async def while_it_lasts(self, work: Awaitable[T]) -> T:
        """What the caller is asked is worth nothing once the call has ended. Raises Ended."""
        asked = asyncio.ensure_future(work)
        self._asked.add(asked)
        try:
            return await asked
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if asked.cancelled() and task is not None and not task.cancelling():
                raise Ended from None
            raise
        finally:
            self._asked.discard(asked)

    def end(self) -> None:
        for asked in self._asked:
            asked.cancel()


class Ended(Exception):
    """The call has ended before its caller could answer."""


_NOBODYS: Any = object()
_current: ContextVar[UnderWay | None] = ContextVar("under way", default=None)
"""The SDK handles what comes on a call's own HTTP response in the context of that call."""


def nobodys() -> Context:
    """For what goes on beside all calls: whatever a server says there belongs to none."""
    context = Context()
    context.run(_current.set, _NOBODYS)
    return context


class Calls:
    def __init__(self) -> None:
        self._calls: set[UnderWay] = set()
        self._aside = 0
        self._left: dict[str, float] = {}
        """Personas by when one of them last gave up waiting: the server may be busy with that still."""

    @contextmanager
    def one(self, call: UnderWay) -> Iterator[None]:
        self._calls.add(call)
        token = _current.set(call)
        try:
            yield
        except asyncio.CancelledError:  # also for a time limit
            self._left[call.context.persona] = time.monotonic()
            raise
        finally:
            _current.reset(token)
            self._calls.discard(call)
            call.end()

    @contextmanager
    def aside(self, persona: str) -> Iterator[None]:
        """Something else that the server is asked, in which nobody can be asked back."""
        self._aside += 1
        token = _current.set(_NOBODYS)
        try:
            yield
        except asyncio.CancelledError:
            self._left[persona] = time.monotonic()
            raise
        finally:
            _current.reset(token)
            self._aside -= 1

    def whose(self) -> UnderWay | None:
        """Only where it is certain. A call that has ended is nobody's."""
        current = _current.get()
        if current is not None:
            return current if current in self._calls else None
        alone = len({call.caller for call in self._calls}) == 1
        return next(iter(self._calls)) if alone and not self._others() else None

    def heard_by(self) -> UnderWay | None:
        """As `whose`; and of several calls of one client, any: they are told to the same client."""
        found = self.whose()
        owners = {call.caller.owner for call in self._calls}
        if found is not None or _current.get() is not None or len(owners) != 1 or None in owners:
            return found
        return next(iter(self._calls)) if not self._others() else None

    def _others(self) -> bool:
        """Whether the server may speak of something that is none of these calls."""
        here, now = {call.context.persona for call in self._calls}, time.monotonic()
        return self._aside > 0 or any(
            now - at < LINGERS for persona, at in self._left.items() if persona not in here
        )
