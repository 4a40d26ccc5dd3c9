"""What jobs need of a gate. They have no other way to do anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from toolgate.core.result import Result
from toolgate.ledger.claims import Claimed

Progress = Callable[[float, str], None]


class Hands(Protocol):
    async def call(
        self, tool: str, args: Mapping[str, Any], *, persona: str, key: str, conversation: str, job: str,
        reason: str, progress: Progress,
    ) -> Result:  # fmt: skip
        """One call through the gate, handed back as `pending` where it asks."""
        ...

    async def answered(self, question: str) -> None:
        """Until the question is approved; a refusal and an expiry raise."""
        ...

    async def claim(self, persona: str, key: str) -> Claimed | None:
        """What became of an earlier call with this key."""
        ...

    async def reconcile(self) -> None:
        """Settle what dead processes left running."""
        ...

    def seal(self, text: str) -> str:
        """A keyed hash: only a gate of this project can have made it."""
        ...

    async def check(self, tool: str, args: Mapping[str, Any], persona: str) -> None:
        """Refuse now what could never run: an unknown tool or persona, wrong arguments, secrets in them."""
        ...
