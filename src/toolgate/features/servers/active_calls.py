"""Calls that are under way at one server, and the rules by which a message of the server's belongs to one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context as ContextVars
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolgate.core.caller import Caller
from toolgate.core.context import Context
from toolgate.core.event import Event
from toolgate.core.result import Result

# The gate, as far as the servers behind it reach: what they want becomes calls and events there.

Call = Callable[..., Awaitable[Result]]
Record = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True)
class ServersPort:
    call: Call
    record: Record


T = TypeVar("T")
LINGERS_SECONDS = 600.0
"""For which a server may go on with a call that was given up."""
BURST, A_SECOND = 100, 10.0
"""Log messages of one call that are passed on at once, and after that each second."""


class Quota:
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


@dataclass(eq=False)
class ActiveCall:
    """One call at a server: whom the server can come back to, and what it has used up of that."""

    caller: Caller
    context: Context
    samplings: int = 0
    """How often the server has wanted a model for it."""
    questions: int = 0
    """How often it has asked the human something."""
    lines: Quota = field(default_factory=Quota)
    refused: bool = False
    """It is certain that its request never left: nobody listens at the server's address."""
    _asked: set[asyncio.Future[Any]] = field(default_factory=set)

    async def while_it_lasts(self, work: Awaitable[T]) -> T:
        """What the caller is asked is worth nothing once the call has ended. Raises CallEnded."""
        asked = asyncio.ensure_future(work)
        self._asked.add(asked)
        try:
            return await asked
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if asked.cancelled() and task is not None and not task.cancelling():
                raise CallEnded from None
            raise
        finally:
            self._asked.discard(asked)

    def end(self) -> None:
        for asked in self._asked:
            asked.cancel()


class CallEnded(Exception):
    """The call has ended before its caller could answer."""


_NOBODYS: Any = object()
_request: ContextVar[ActiveCall | None] = ContextVar("toolgate request to a server", default=None)
"""The call whose request is being sent. Only between the SDK's send and its callbacks: it sends a request, and handles
what comes on that request's own HTTP response, in the context of the sender, and hands nothing else along."""


def request_refused() -> None:
    """The transport could not connect, so the request that it was to send did not leave."""
    current = _request.get()
    if isinstance(current, ActiveCall):
        current.refused = True


def nobodys() -> ContextVars:
    """For what goes on beside all calls: whatever a server says there belongs to none."""
    context = ContextVars()
    context.run(_request.set, _NOBODYS)
    return context


class ActiveCalls:
    def __init__(self) -> None:
        self._calls: set[ActiveCall] = set()
        self._aside = 0
        self._left: dict[str, float] = {}
        """Personas by when one of them last gave up waiting: the server may be busy with that still."""

    @contextmanager
    def one(self, call: ActiveCall) -> Iterator[None]:
        self._calls.add(call)
        token = _request.set(call)
        try:
            yield
        except asyncio.CancelledError:  # also for a time limit
            self._left[call.context.persona] = time.monotonic()
            raise
        finally:
            _request.reset(token)
            self._calls.discard(call)
            call.end()

    @contextmanager
    def aside(self, persona: str) -> Iterator[None]:
        """Something else that the server is asked, in which nobody can be asked back."""
        self._aside += 1
        token = _request.set(_NOBODYS)
        try:
            yield
        except asyncio.CancelledError:
            self._left[persona] = time.monotonic()
            raise
        finally:
            _request.reset(token)
            self._aside -= 1

    def whose(self) -> ActiveCall | None:
        """The call that the message being handled belongs to; only where it is certain. One that has ended is
        nobody's."""
        current = _request.get()
        if current is not None:
            return current if current in self._calls else None
        alone = len({call.caller for call in self._calls}) == 1
        return next(iter(self._calls)) if alone and not self._others() else None

    def heard_by(self) -> ActiveCall | None:
        """As `whose`; and of several calls of one client, any: they are told to the same client."""
        found = self.whose()
        owners = {call.caller.owner for call in self._calls}
        if found is not None or _request.get() is not None or len(owners) != 1 or None in owners:
            return found
        return next(iter(self._calls)) if not self._others() else None

    def _others(self) -> bool:
        """Whether the server may speak of something that is none of these calls."""
        here, now = {call.context.persona for call in self._calls}, time.monotonic()
        return self._aside > 0 or any(
            now - at < LINGERS_SECONDS for persona, at in self._left.items() if persona not in here
        )
