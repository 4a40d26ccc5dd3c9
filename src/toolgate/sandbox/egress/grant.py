"""What a program may reach: hosts, ports and methods. What is not in it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs, NotAllowed, TooLarge
from toolgate.core.target import Reach, Target, shown
from toolgate.sandbox.job import Request

MAX_HOSTS = 100
_METHOD = re.compile(r"[A-Z]{1,20}")
_NEVER = frozenset({"CONNECT", "TRACE"})
"""CONNECT follows from a grant without methods; TRACE sends back what was put in."""


@dataclass(frozen=True, slots=True)
class HostGrant:
    hosts: tuple[Reach, ...] = ()
    methods: frozenset[str] | None = None
    """None for all, and only then for tunnels, in which nobody sees the method."""

    @classmethod
    def parse(cls, hosts: Iterable[str], methods: Iterable[str] | None = None) -> HostGrant:
        """From what the caller wrote. `InvalidArgs` for anything odd."""
        reaches = tuple(dict.fromkeys(map(Reach.parse, hosts)))
        if len(reaches) > MAX_HOSTS:
            raise InvalidArgs(
                f"a grant with {len(reaches)} hosts; {MAX_HOSTS} are the most", "name fewer hosts"
            )
        if methods is None:
            return cls(reaches)
        upper = frozenset(method.upper() for method in methods)
        for method in sorted(upper):
            if not _METHOD.fullmatch(method) or method in _NEVER:
                raise InvalidArgs(
                    f"{visible(method[:30])!r} is not a method that can be granted", "name GET, POST, …"
                )
        return cls(reaches, upper)

    def check(self, method: str, target: Target) -> None:
        """Returns if this may be sent there."""
        if not any(reach.covers(target) for reach in self.hosts):
            raise NotAllowed(
                f"this program may not reach {target.scheme or 'CONNECT'} {target.place[:300]}; it may reach {self}",
                "ask for a network grant that names this host and port",
            )
        if method != "CONNECT" and method.upper() in _NEVER:
            raise NotAllowed(f"{method} is never sent", "use another method")
        if self.methods is None or method in self.methods:
            return
        allowed = ", ".join(sorted(self.methods)) or "no method"
        if method == "CONNECT":
            raise NotAllowed(
                f"CONNECT would hide the method, and this program may only use {allowed}",
                "send the https:// URL itself to the proxy (get_json and fetch_with_auth do)",
            )
        raise NotAllowed(
            f"this program may only use {allowed}, not {method[:30]}", "ask for a grant with that method"
        )

    def __str__(self) -> str:
        names = [str(reach) for reach in self.hosts]
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (", ".join(names[:10]) or "no host") + more


@dataclass(frozen=True, slots=True)
class EgressLimits:
    connections: int = 16
    """At once; further ones wait in the kernel's queue."""
    requests: int = 500
    """Of one program, refused ones too. Beyond, they are answered with 429."""
    patience: int = 50
    """So many are answered with 429; then nothing listens any more."""
    listed: int = 200
    """Requests that are kept one by one; the rest is counted."""
    names: int = 64
    """Different host names."""
    head_bytes: int = 32 << 10
    response_bytes: int = 32 << 20
    down_bytes: int = 128 << 20
    up_bytes: int = 32 << 20
    pieces: int = 200_000
    """Chunks of all messages: millions of chunks of a byte would keep the host busy."""
    connect_s: float = 10.0
    idle_s: float = 30.0
    total_s: float = 300.0


@dataclass(slots=True)
class Spent:
    """What one program has used so far."""

    limits: EgressLimits
    requests: int = 0
    up: int = 0
    down: int = 0
    pieces: int = 0

    def take_piece(self) -> None:
        self.pieces += 1
        if self.pieces > self.limits.pieces:
            raise TooLarge(
                f"this program's messages have more than {self.limits.pieces:,} chunks", "use larger ones"
            )

    def send(self, count: int) -> None:
        self.up += count
        if self.up > self.limits.up_bytes:
            raise TooLarge(f"this program has sent more than {self.limits.up_bytes:,} bytes", "send less")

    def receive(self, count: int) -> None:
        self.down += count
        if self.down > self.limits.down_bytes:
            raise TooLarge(
                f"this program has received more than {self.limits.down_bytes:,} bytes", "fetch less"
            )


@dataclass(slots=True)
class RequestAttempt:
    """A request under way; it becomes a `Request` when it ends."""

    spent: Spent
    method: str = ""
    url: str = ""
    allowed: bool = False
    status: int = 0
    reason: str = ""
    address: str = ""
    sent: int = 0
    received: int = 0
    injected: tuple[str, ...] = ()

    def send(self, count: int) -> None:
        self.sent += count
        self.spent.send(count)

    def receive(self, count: int) -> None:
        self.received += count
        self.spent.receive(count)
        if self.received > self.spent.limits.response_bytes:
            most = self.spent.limits.response_bytes
            raise TooLarge(f"the response is larger than {most:,} bytes", "ask for a part of it")


class RequestRecord:
    def __init__(
        self, most: int, redact: Callable[[str], str], on_request: Callable[[Request], None] | None
    ) -> None:
        self._most = most
        self._redact = redact
        self._on_request = on_request
        self._requests: list[Request] = []
        self.unlisted = 0

    @property
    def requests(self) -> tuple[Request, ...]:
        """In the order in which they ended. Where there were too many, the last one says how many are missing."""
        if not self.unlisted:
            return tuple(self._requests)
        rest = Request("", "", allowed=False, reason=f"{self.unlisted} more requests are not listed")
        return (*self._requests, rest)

    def add(self, attempt: RequestAttempt) -> None:
        request = Request(
            attempt.method[:20], self._redact(shown(attempt.url)), attempt.allowed, attempt.status,
            self._redact(attempt.reason), attempt.address, attempt.sent, attempt.received, attempt.injected,
        )  # fmt: skip
        if len(self._requests) < self._most:
            self._requests.append(request)
        else:
            self.unlisted += 1
        if self._on_request is not None:
            self._on_request(request)
