"""Use of the network by one program: its limits, the count of what it has used, and the record of every request it tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolgate.core.errors import TooLarge
from toolgate.core.target import shown

from ..job import Request


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
