"""Every request that was tried, as it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolgate.core.errors import TooLarge
from toolgate.core.target import shown

from ..job import Request
from .limits import Spent


@dataclass(slots=True)
class Attempt:
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


class Record:
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

    def add(self, attempt: Attempt) -> None:
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
