"""The gate, as far as the servers behind it reach: what they want becomes calls and events there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolgate.core.event import Event
from toolgate.core.result import Result

Call = Callable[..., Awaitable[Result]]
Record = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True)
class GatePort:
    call: Call
    record: Record
