"""What tests of the gate share: a clock that stands still, keys that are known, a witness of what really ran."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgate import Change, Context, FileChange, MountPath, Tool, tool
from toolgate.core.clock import SECOND
from toolgate.ledger.keys import Keys

NOON = 1_800_000_000 * SECOND
KEYS = Keys({1: b"k" * 32}, b"s" * 32)
PATIENCE = 40.0
"""The bound of every wait in these tests, in seconds."""


class FixedClock:
    def __init__(self, now: int = NOON) -> None:
        self.micros = now

    def now(self) -> int:
        return self.micros

    def advance(self, seconds: float) -> None:
        self.micros += round(seconds * SECOND)


def policy(decision: str = "allow", *, rule: str = "the-rule", **more: Any) -> dict[str, Any]:
    """A configuration with one rule about the tools of this module; `more` is merged in."""
    base: dict[str, Any] = {
        "version": 1,
        "default_persona": "ada",
        "personas": {"ada": {"phase": "observe"}, "bob": {"phase": "observe"}},
        "policy": {"rules": [{"name": rule, "persona": "*", "tools": ["t.*"], "decision": decision}]},
    }
    return base | more


@dataclass
class Witness:
    """Written by the tools themselves, when they really run. It knows nothing of the gate."""

    ran: list[tuple[str, str, str]] = field(default_factory=list)
    """(call id, tool, argument)"""

    def saw(self, context: Context, argument: str) -> None:
        self.ran.append((context.call_id, context.tool, argument))

    @property
    def arguments(self) -> list[str]:
        return [argument for _, _, argument in self.ran]


def toolset(witness: Witness, root: Path) -> list[Tool]:
    @tool("t.look", reads=["system"])
    async def look(context: Context, x: str = "") -> str:
        """Read something."""
        witness.saw(context, x)
        return x

    @tool("t.act", writes=["outside"])
    async def act(context: Context, x: str = "") -> dict[str, str]:
        """Do something outside."""
        witness.saw(context, x)
        return {"did": x}

    @tool("t.fail", writes=["outside"])
    async def fail(context: Context, x: str = "") -> str:
        """Try something outside, in vain."""
        witness.saw(context, x)
        raise RuntimeError(f"could not {x}")

    def plan_write(path: MountPath, text: str) -> Change:
        """Write a file."""
        file = root / path.relative
        before = file.read_bytes() if file.exists() else None
        return Change((FileChange(path, before, text.encode()),), f"write {path.shown}")

    @tool("t.write", writes=["project"], plan=plan_write)
    async def write(change: Change, context: Context) -> str:
        for each in change.files:
            file = root / each.path.relative
            now = file.read_bytes() if file.exists() else None
            if now != each.before:
                from toolgate.core.errors import Conflict

                raise Conflict(f"{each.path.shown} has changed", "plan again")
            assert each.after is not None
            witness.saw(context, f"{each.path.relative}={each.after.decode()}")
            file.write_bytes(each.after)
        return "written"

    return [look, act, fail, write]


@contextmanager
def running(task: asyncio.Task[Any]) -> Iterator[asyncio.Task[Any]]:
    """A task that does not outlive its test."""
    try:
        yield task
    finally:
        task.cancel()


async def soon(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)
