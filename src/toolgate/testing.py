"""Strict fakes for people who build on toolgate: a gate in memory, a clock that stands still, a scripted human.

```python
async with testing.gate(tools=[send], policy={...}, human=Script(Approve("mail.send"))) as gate:
    result = await gate.call("mail.send", {...}, persona="builder")
```
A question nobody scripted fails the test at once, and so does a scripted answer nobody asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgate import app
from toolgate.consent.works import Scope
from toolgate.core.clock import SECOND
from toolgate.core.ports import Question
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.project.plugins import Plugin
from toolgate.storage.memory import MemoryBackend

START = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z."""

ROOMY: Mapping[str, Any] = {
    "version": 1,
    "default_persona": "tester",
    "personas": {"tester": {"phase": "collaborate"}},
}


class FixedClock:
    """Moves only when told to."""

    def __init__(self, start: int = START) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * SECOND)


@dataclass(frozen=True)
class Approve:
    """Approve the next question, which must be about this tool; with a scope, grant as well."""

    tool: str
    scope: Scope | None = None
    reason: str = ""


@dataclass(frozen=True)
class Refuse:
    """Refuse the next question, which must be about this tool."""

    tool: str
    reason: str = ""


class Script:
    """A human who answers exactly as written, in this order."""

    name = "script"

    def __init__(self, *answers: Approve | Refuse) -> None:
        self.answers = list(answers)
        self.seen: list[Question] = []
        self.faults: list[str] = []
        self.gate: Gate | None = None

    async def ask(self, question: Question) -> None:
        assert self.gate is not None
        self.seen.append(question)
        answer = self.answers.pop(0) if self.answers else None
        if answer is None or answer.tool != question.tool:
            expected = f"{answer.tool} was next" if answer else "no answer is left"
            self.faults.append(f"nobody scripted an answer for {question.tool}: {expected}")
            await self.gate.answer(
                question.id, "deny", reason=self.faults[-1], channel=self.name, by="script"
            )
            return
        approve = isinstance(answer, Approve)
        scope = answer.scope if isinstance(answer, Approve) else None
        await self.gate.answer(
            question.id, "approve" if approve else "deny", reason=answer.reason, scope=scope,
            channel=self.name, by="script",
        )  # fmt: skip

    def check(self) -> None:
        """Everything asked was scripted, and everything scripted was asked."""
        faults = [*self.faults, *(f"{answer.tool} was never asked about" for answer in self.answers)]
        if faults:
            raise AssertionError("; ".join(faults))


@asynccontextmanager
async def gate(
    tools: Iterable[Tool] = (),
    policy: Mapping[str, Any] | None = None,
    *,
    human: Script | None = None,
    clock: FixedClock | None = None,
    database: MemoryBackend | None = None,
    plugins: Iterable[Plugin] = (),
    root: str | Path | None = None,
) -> AsyncIterator[Gate]:
    """A whole gate in memory. Without a human, a call that asks stays pending or waits, as in real life."""
    script = human if human is not None else Script()
    with tempfile.TemporaryDirectory() as scratch:
        async with app.open(
            root or scratch,
            dict(policy or ROOMY),
            database or MemoryBackend(),
            tools=tools,
            plugins=plugins,
            channels=[script] if human is not None else [],
            clock=clock or FixedClock(),
        ) as opened:
            script.gate = opened
            yield opened
        script.check()


__all__ = ["Approve", "FixedClock", "MemoryBackend", "Refuse", "Scope", "Script", "gate"]
