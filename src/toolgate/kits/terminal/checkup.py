"""Checkup of a project: what a check of `toolgate doctor` is given, and what it finds.

A check is an async generator of findings about one thing. It looks and repairs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import toolgate
from toolgate.project import opening

if TYPE_CHECKING:
    from toolgate.facade import Gate
    from toolgate.project.opening import Setup
    from toolgate.project.record import Record


class Diagnosis(NamedTuple):
    state: Literal["ok", "warn", "bad"]
    what: str
    found: str
    fix: str = ""


class Patient:
    """The project under examination: opened once, when the first check needs it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.setup: Setup | None = None
        self.record: Record | None = None
        self.gate: Gate | None = None
        self._stack = AsyncExitStack()

    async def open_record(self) -> None:
        if self.setup is not None and self.setup.trusted:
            self.record = await self._stack.enter_async_context(opening.open_record(self.setup))

    async def open_gate(self) -> None:
        self.gate = await self._stack.enter_async_context(toolgate.open(self.root))

    async def close(self) -> None:
        await self._stack.aclose()


Check = Callable[[Patient], AsyncIterator[Diagnosis]]
