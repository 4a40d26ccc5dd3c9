"""The terminal as a channel: whoever sits there is asked and answers, unless somebody else is faster; and its keyboard."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError
from toolgate.core.records import dataclass, field
from toolgate.kits.terminal import project, speech

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from toolgate.consent.works import Scope
    from toolgate.core.ports import Question
    from toolgate.core.result import Result
    from toolgate.facade import Gate

    Make = Callable[[Gate, bool], Coroutine[Any, Any, Result]]


@dataclass
class Terminal:
    """`gate` is set once it is open: a channel is needed before there is one."""

    interactive: bool
    yes: bool = False
    name: str = "terminal"
    answers: bool = False
    """It is also asked what must be answered elsewhere, and says where."""
    gate: Gate | None = None
    later: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, question: Question) -> None:
        from toolgate.kits.terminal import (
            conversation,
        )  # most calls ask nobody, and do without all that draws

        elsewhere = bool(question.channels) and self.name not in question.channels
        if self.yes and not elsewhere:
            conversation.show(question, whole=True)
            await self.answer(question, True, reason="--yes")
        elif self.interactive and not elsewhere:
            conversation.show(question)
            try:
                await conversation.TerminalConversation(self, question).run()
            except asyncio.CancelledError:
                assert self.gate is not None
                await conversation.say_who(self.gate, question)
                raise
        else:
            conversation.announce(question)

    async def answer(
        self, question: Question, approve: bool, reason: str = "", scope: Scope | None = None
    ) -> bool:
        assert self.gate is not None
        try:
            await self.gate.answer(
                question.id, "approve" if approve else "deny", reason=reason, scope=scope, channel=self.name
            )
        except CallError as error:
            speech.note(f"{error.message}; {error.fix}", style="yellow")
            return False
        return True


async def carry(make: Make, root: Path | None, *, yes: bool = False, wait: bool = True) -> Result:
    """Make a call with whoever sits at the terminal to answer it."""
    terminal = Terminal(sys.stdin.isatty() and sys.stderr.isatty(), yes)
    async with project.any_gate(root, [terminal]) as gate:
        terminal.gate = gate
        return await _or_later(make, gate, terminal) if wait else await make(gate, False)


async def _or_later(make: Make, gate: Gate, terminal: Terminal) -> Result:
    """Wait for the call, unless the human puts it off; then its question stays open and it is pending."""
    calling = asyncio.create_task(make(gate, True))
    later = asyncio.create_task(terminal.later.wait())
    try:
        await asyncio.wait((calling, later), return_when=asyncio.FIRST_COMPLETED)
        if calling.done():
            return await calling
    finally:
        for task in (calling, later):
            task.cancel()
        await asyncio.gather(calling, later, return_exceptions=True)
    return await make(gate, False)


class Keyboard:
    """Reads whole lines without blocking the event loop, so that a question can end while nobody types.

    An empty string is the end of input (Ctrl-D), as with `readline`.
    """

    def __init__(self, handle: int | None = None) -> None:
        self._handle = sys.stdin.fileno() if handle is None else handle
        self._rest = b""

    def forget(self) -> None:
        self._rest = b""
        forget_typed(self._handle)

    async def line(self) -> str:
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                break
            self._rest += chunk
        line, newline, self._rest = self._rest.partition(b"\n")
        return (line + newline).decode(errors="replace")

    async def _chunk(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._handle, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._handle)
        return os.read(self._handle, 4096)


def forget_typed(handle: int) -> None:
    """What was typed before a question was shown does not answer it."""
    if os.isatty(handle):
        import termios

        termios.tcflush(handle, termios.TCIFLUSH)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def unseen(prompt: str) -> bytes:
    """A line that is typed at the terminal of stdin without being shown there."""
    import termios

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    try:
        # before the prompt: whoever types or pastes at once is not shown, and not lost
        termios.tcsetattr(handle, termios.TCSAFLUSH, silent)
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return sys.stdin.buffer.readline().rstrip(b"\r\n")
    finally:
        termios.tcsetattr(handle, termios.TCSAFLUSH, before)
        sys.stderr.write("\n")
