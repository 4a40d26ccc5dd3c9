"""Site: what every request of one server shares, as far as routes and pages may use it; with the sessions of its console.

A session says who logged in with the human's token, for how long, and the word that forms must say. Sessions are kept in
memory: a restart logs everybody out. A session ends when the token it was made with is replaced.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from toolgate.core.display import visible
from toolgate.core.errors import RateLimited
from toolgate.kits.web.tokens import Tokens

if TYPE_CHECKING:
    from toolgate.facade import Gate

LIFETIME = 12 * 3600.0
IDLE = 2 * 3600.0
MOST_SESSIONS = 100
COOKIE = "toolgate_session"
WRONG_TOKEN_WINDOW = 60.0
WRONG_PER_ADDRESS = 10
WRONG_TOGETHER = 100
KNOWN_ADDRESSES = 1000
log = logging.getLogger("toolgate.http")


@dataclass
class ConsoleSession:
    id: str
    csrf: str
    token: str
    """The hash of the token it was made with."""
    made: float
    seen: float


class ConsoleSessions:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, ConsoleSession] = {}

    def begin(self, token: str) -> ConsoleSession:
        self._sweep()
        while len(self._open) >= MOST_SESSIONS:  # the oldest goes; whoever has the token can log in again
            del self._open[min(self._open, key=lambda each: self._open[each].seen)]
        now = self._clock()
        session = ConsoleSession(
            secrets.token_urlsafe(32), secrets.token_urlsafe(32), digest(token), now, now
        )
        self._open[_key(session.id)] = session
        return session

    def find(self, ident: str, token: str) -> ConsoleSession | None:
        """The session of this cookie, if it is alive and `token` is still the human's."""
        session = self._open.get(_key(ident)) if ident else None
        if session is None:
            return None
        if not self._alive(session) or session.token != digest(token):
            self.end(ident)
            return None
        session.seen = self._clock()
        return session

    def end(self, ident: str) -> None:
        self._open.pop(_key(ident), None)

    def _alive(self, session: ConsoleSession) -> bool:
        now = self._clock()
        return now - session.made < LIFETIME and now - session.seen < IDLE

    def _sweep(self) -> None:
        self._open = {key: each for key, each in self._open.items() if self._alive(each)}


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _key(ident: str) -> str:
    """Looked up by hash: how long a look takes says nothing about an id."""
    return hashlib.sha256(ident.encode("utf-8", "replace")).hexdigest()


class Throttle:
    """Wrong tokens are slowed down: so many a minute from one address, so many from all together. A right one is let in
    whatever others do: 256 bits are not guessed, and nobody must be able to lock the human out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: deque[float] = deque()
        self._by: OrderedDict[str, deque[float]] = OrderedDict()

    def failed(self, address: str) -> None:
        """Count a wrong token; raise once there were too many."""
        mine = self._by.setdefault(address, deque(maxlen=WRONG_PER_ADDRESS + 1))
        self._by.move_to_end(address)
        while len(self._by) > KNOWN_ADDRESSES:
            self._by.popitem(last=False)
        for times, most in ((mine, WRONG_PER_ADDRESS), (self._all, WRONG_TOGETHER)):
            self._count(times, most)

    def _count(self, times: deque[float], most: int) -> None:
        now = self._clock()
        while times and times[0] <= now - WRONG_TOKEN_WINDOW:
            times.popleft()
        if len(times) >= most:
            wait = max(0.0, times[0] + WRONG_TOKEN_WINDOW - now)
            raise RateLimited(
                f"there were {most} wrong tokens within a minute",
                "`toolgate token` prints the right one; try again later",
                data={"retry_after_s": round(wait, 1)},
            )
        times.append(now)


def secret_path() -> str:
    """Where the console lives. Browsers send cookies to every port of a host, so a page that an agent serves on
    another port of 127.0.0.1 would be given the session's cookie; a path it cannot guess keeps it from that."""
    return f"/c/{secrets.token_urlsafe(16)}"


@dataclass
class Site:
    gate: Gate
    tokens: Tokens
    hosts: tuple[str, ...] = ()
    """Names, besides those of loopback, by which it may be reached."""
    address: str = ""
    """Where a human opens the console, without a token."""
    base: str = field(default_factory=secret_path)
    sessions: ConsoleSessions = field(default_factory=ConsoleSessions)
    throttle: Throttle = field(default_factory=Throttle)

    def shown(self, path: str) -> str:
        """A path as it may be logged: without the secret part of the console's, and harmless to read."""
        return visible(path.replace(self.base, "(console)")[:200])

    async def refused(self, what: str, persona: str = "") -> None:
        """Somebody tried what is not theirs. The ledger keeps it, floods counted."""
        log.warning("%s", what, extra={"persona": persona})
        await self.gate.refused(what, persona)


def site_of(request: Request) -> Site:
    found = request.app.state.site
    assert isinstance(found, Site)
    return found


Here = Annotated[Site, Depends(site_of)]
