"""Sessions of the console: who logged in with the human's token, for how long, and the word that forms must say.

They are kept in memory: a restart logs everybody out. A session ends when the token it was made with is replaced.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

LIFETIME = 12 * 3600.0
IDLE = 2 * 3600.0
MOST = 100
COOKIE = "toolgate_session"


@dataclass
class Session:
    id: str
    csrf: str
    token: str
    """The hash of the token it was made with."""
    made: float
    seen: float


class Sessions:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, Session] = {}

    def begin(self, token: str) -> Session:
        self._sweep()
        while len(self._open) >= MOST:  # the oldest goes; whoever has the token can log in again
            del self._open[min(self._open, key=lambda each: self._open[each].seen)]
        now = self._clock()
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), digest(token), now, now)
        self._open[_key(session.id)] = session
        return session

    def find(self, ident: str, token: str) -> Session | None:
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

    def _alive(self, session: Session) -> bool:
        now = self._clock()
        return now - session.made < LIFETIME and now - session.seen < IDLE

    def _sweep(self) -> None:
        self._open = {key: each for key, each in self._open.items() if self._alive(each)}


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _key(ident: str) -> str:
    """Looked up by hash: how long a look takes says nothing about an id."""
    return hashlib.sha256(ident.encode("utf-8", "replace")).hexdigest()
