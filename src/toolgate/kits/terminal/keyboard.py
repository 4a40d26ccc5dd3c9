"""Lines from the terminal without blocking the event loop, so that a question can end while nobody types."""

from __future__ import annotations

import asyncio
import os
import sys
import termios


class Keyboard:
    """Reads whole lines. An empty string is the end of input (Ctrl-D), as with `readline`."""

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
        termios.tcflush(handle, termios.TCIFLUSH)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def unseen(prompt: str) -> bytes:
    """A line that is typed at the terminal of stdin without being shown there."""
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
