"""MCP over stdin and stdout: one message a line, several calls at once, nothing but protocol on stdout.

Ends when stdin does, or on SIGTERM or SIGINT.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from toolgate.faces.mcp import jsonrpc
from toolgate.faces.mcp.greeting import Greeting
from toolgate.faces.mcp.jsonrpc import Message, RpcError
from toolgate.faces.mcp.pipe import Lines, Pipe
from toolgate.faces.mcp.protocol import Connection
from toolgate.faces.mcp.server import Server

PATIENCE = 10.0
"""Seconds that running calls have to end once the client has gone."""


class Stdio:
    """One client at the other ends of two pipes."""

    def __init__(
        self, server: Server, persona: str, source: int = 0, target: int = 1, greeting: Greeting | None = None
    ) -> None:
        self.connection = Connection(server, persona, self._send)
        self.pipe = Pipe(source, target)
        self._lines = Lines()
        self._read = greeting.read if greeting is not None else b""
        self._greeted = greeting is not None and greeting.answered
        """The next message is an `initialize` that has its answer."""

    async def serve(self) -> None:
        with _stopping() as stopped:
            leave = self.connection.server.watching.join(self.connection.persona, self._changed)
            self._took(self._read)
            self.pipe.open(self._took)
            waits = [asyncio.ensure_future(event.wait()) for event in (self.pipe.ended, stopped)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                await self._end(PATIENCE if not stopped.is_set() and not self.pipe.broken else 0.0)
            finally:
                leave()
                for wait in waits:
                    wait.cancel()
                self.pipe.close()

    async def _end(self, patience: float) -> None:
        """A client that only closed its side still gets its answers."""
        if patience:
            self._take(self._lines.rest())
        await self.connection.close(patience)
        if patience:
            await self.pipe.drain(patience)

    def _took(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._take(line)

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self._send(jsonrpc.too_large().as_message(None))
        elif line and not line.isspace():
            try:
                message = jsonrpc.read(line)
            except RpcError as error:
                self._send(error.as_message(None))
            else:
                greeted, self._greeted = self._greeted, False
                self.connection.receive(message, _unsent if greeted else None)

    def _send(self, message: Message) -> None:
        if self.pipe.behind and message.get("method") in jsonrpc.DROPPED:
            return  # a client that does not keep up misses progress, not answers
        self.pipe.write(jsonrpc.write(message) + b"\n")

    def _changed(self) -> None:
        """In the handshake era a client is told unasked; in the stateless one it listens."""
        if self.connection.modern is False:
            self._send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def _unsent(message: Message) -> None:
    return None


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """Set by SIGTERM or SIGINT, which otherwise would strike in the middle of a step."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopped.set)
    try:
        yield stopped
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
