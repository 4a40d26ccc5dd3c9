"""Who holds how many connections and streams, and whose goes when there are too many.

Three kinds of connections: of the human, of a persona, and of nobody yet, because no token was shown. Each has places of
its own, so none can take another's: personas share `connections`, and beside them there are `reserved` places for the
human and `reserved` for nobody's. A new connection is always taken, because it may be the human's: where nobody's are too
many, the oldest of the address that has most of them goes. One that asks for something shows its token at once.
"""

from __future__ import annotations

import logging
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from toolgate.core.errors import RateLimited, Unavailable
from toolgate.core.names import HUMAN
from toolgate.project.sections import HttpSpec

log = logging.getLogger("toolgate.http")
NOBODY = ""
BATCH = 32
"""Connections that are accepted at once. Between being accepted and being heard a connection lives through a few such
batches; there are more reserved places than they fill."""
FILES = 256
"""Descriptors that connections never take: the ledger, the files of calls and the pipes of programs need theirs."""
RETRY_S = 5.0


class ConnectionPlace(Protocol):
    """A connection, as far as it is known here."""

    address: str
    owner: str

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        ...

    def drop(self) -> None: ...


class ConnectionPlaces:
    def __init__(self, limits: HttpSpec) -> None:
        self.limits = limits
        self.streams: Counter[str] = Counter()
        self._owned: dict[str, dict[ConnectionPlace, None]] = {}
        self._nobodys: dict[str, dict[ConnectionPlace, None]] = {}
        """By address, the oldest first."""

    def __len__(self) -> int:
        return sum(map(len, self._owned.values())) + self.nobodys

    @property
    def nobodys(self) -> int:
        return sum(map(len, self._nobodys.values()))

    @property
    def _personas(self) -> int:
        return sum(len(held) for name, held in self._owned.items() if name != HUMAN)

    def arrived(self, place: ConnectionPlace) -> None:
        mine = self._nobodys.setdefault(place.address, {})
        mine[place] = None
        if len(mine) > self.limits.address_connections:
            self._drop(next(iter(mine)))
        while self.nobodys > self.limits.reserved + max(0, self.limits.connections - self._personas):
            self._drop_nobodys()  # more than one where the limits have become smaller

    def left(self, place: ConnectionPlace) -> None:
        for held, key in ((self._nobodys, place.address), (self._owned, place.owner)):
            if key in held:
                held[key].pop(place, None)
                if not held[key]:
                    del held[key]

    def known(self, place: ConnectionPlace, name: str) -> None:
        """Its token says whose it is. Raises where they have no place left; one that rests gives way first."""
        if place.owner == name:
            return
        mine = self._owned.get(name, {})
        most = self.limits.reserved if name == HUMAN else self.limits.persona_connections
        if len(mine) >= most and not self._drop_resting(mine):
            raise RateLimited(
                f"{name} has {most} requests under way, the most there may be",
                "wait for some; `http.persona_connections` in toolgate.yaml says how many",
                data={"limit": "http.persona_connections", "retry_after_s": RETRY_S},
            )
        if name != HUMAN and self._personas >= self.limits.connections:
            largest = max((held for who, held in self._owned.items() if who != HUMAN), key=len)
            if not self._drop_resting(largest):
                raise Unavailable(
                    f"all {self.limits.connections} places for personas are taken",
                    "come back later; `http.connections` in toolgate.yaml says how many there are",
                    data={"limit": "http.connections", "retry_after_s": RETRY_S},
                )
        self.left(place)
        place.owner = name
        self._owned.setdefault(name, {})[place] = None

    @contextmanager
    def stream(self, name: str) -> Iterator[None]:
        """A stream of this name's, as long as it lasts."""
        most = self.limits.reserved if name == HUMAN else self.limits.persona_streams
        if self.streams[name] >= most:
            raise RateLimited(
                f"{name} has {most} streams open, the most there may be",
                "close some; `http.persona_streams` in toolgate.yaml says how many",
                data={"limit": "http.persona_streams", "retry_after_s": RETRY_S},
            )
        self.streams[name] += 1
        try:
            yield
        finally:
            self.streams[name] -= 1
            if not self.streams[name]:
                del self.streams[name]

    def each(self) -> list[ConnectionPlace]:
        groups = (*self._nobodys.values(), *self._owned.values())
        return [place for group in groups for place in group]

    def make_room(self) -> None:
        """Descriptors have run out, whoever took them: let go of some that nobody will miss."""
        for _ in range(max(BATCH, self.nobodys // 4)):
            self._drop_nobodys()

    def fit(self) -> None:
        """Never more connections than there are descriptors for. The limit of the process is raised where that is allowed."""
        wanted = self.limits.connections + 2 * self.limits.reserved
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < wanted + BATCH + FILES:
            need = wanted + BATCH + FILES
            soft = need if hard == resource.RLIM_INFINITY else min(hard, need)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.limits = fitting(self.limits, soft if soft != resource.RLIM_INFINITY else 1 << 30)

    def _drop_nobodys(self) -> None:
        if self._nobodys:
            most = max(self._nobodys, key=lambda address: len(self._nobodys[address]))
            self._drop(next(iter(self._nobodys[most])))

    def _drop_resting(self, held: dict[ConnectionPlace, None]) -> bool:
        resting = next((place for place in held if not place.busy), None)
        if resting is not None:
            self._drop(resting)
        return resting is not None

    def _drop(self, place: ConnectionPlace) -> None:
        self.left(place)
        place.drop()


def fitting(limits: HttpSpec, descriptors: int) -> HttpSpec:
    """The same shares of fewer places, where there are not enough descriptors."""
    wanted = limits.connections + 2 * limits.reserved
    there = descriptors - min(FILES, descriptors // 2) - BATCH
    if there >= wanted:
        return limits
    share = max(0.0, there / wanted)
    fewer = {
        "connections": max(4, int(limits.connections * share)),
        "reserved": max(4, int(limits.reserved * share)),
    }
    log.warning(
        "%d file descriptors are too few for %d connections: places for personas %d, reserved %d; raise `ulimit -n`",
        descriptors, wanted, fewer["connections"], fewer["reserved"],
    )  # fmt: skip
    return limits.model_copy(update=fewer)
