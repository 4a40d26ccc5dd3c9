"""A person at the terminal while personas work: a gate that asks there, and work that can be put off. What the commands
of runs and of rooms share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from toolgate.kits.terminal import project, speech
from toolgate.kits.terminal.command import Option
from toolgate.kits.terminal.prompt import Terminal

if TYPE_CHECKING:
    from toolgate.features.agents.runs import Runs

T = TypeVar("T")
Plain = Annotated[
    bool, Option("--plain", help="Words instead of signs, no colour: for screen readers and logs.")
]
Usd = Annotated[float, Option("--usd", help="What it may cost at most.", min=0, max=1000000)]
WAITING = 3
"""The exit code where a human has to answer first."""


@asynccontextmanager
async def opened(root: Path | None) -> AsyncIterator[Runs]:
    """The agents of a project, to look at."""
    async with project.gate(root) as gate:
        yield gate.feature("agents")


@asynccontextmanager
async def attended(root: Path | None) -> AsyncIterator[tuple[Runs, Terminal]]:
    """The same with whoever sits at the terminal to answer."""
    terminal = Terminal(sys.stdin.isatty() and sys.stderr.isatty())
    async with project.gate(root, [terminal]) as gate:
        terminal.gate = gate
        yield gate.feature("agents"), terminal


async def until_later(work: Coroutine[Any, Any, T], terminal: Terminal, again: str) -> T | None:
    """Do it, unless the human puts its question off; then it waits, and None comes back. Who interrupts it is told how
    it goes on."""
    terminal.later.clear()
    driving = asyncio.create_task(work)
    later = asyncio.create_task(terminal.later.wait())
    try:
        await asyncio.wait((driving, later), return_when=asyncio.FIRST_COMPLETED)
        return await driving if driving.done() else None
    except asyncio.CancelledError:
        speech.note(f"interrupted; go on with: toolgate {again}")
        raise
    finally:
        for task in (driving, later):
            task.cancel()
        await asyncio.gather(driving, later, return_exceptions=True)
