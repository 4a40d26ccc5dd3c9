"""MCP over stdin and stdout: one message a line, several calls at once, nothing but protocol on stdout.

Ends when stdin does, or on SIGTERM or SIGINT.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolgate.faces.mcp import jsonrpc
from toolgate.faces.mcp.greeting import Greeting
from toolgate.faces.mcp.jsonrpc import MAX_BYTES, Message, RpcError
from toolgate.faces.mcp.protocol import ClientConnection
from toolgate.faces.mcp.server import McpServer

CHUNK = 1 << 16
BACKLOG = 4 << 20
"""Bytes that may wait to be read by the client before nothing more is taken from it."""
PATIENCE = 10.0
"""Seconds that running calls have to end once the client has gone."""


class Stdio:
    """One client at the other ends of two pipes."""

    def __init__(
        self,
        server: McpServer,
        persona: str,
        source: int = 0,
        target: int = 1,
        greeting: Greeting | None = None,
    ) -> None:
        self.connection = ClientConnection(server, persona, self._send)
        self.pipe = Pipe(source, target)
        self._lines = Lines()
        self._read = greeting.read if greeting is not None else b""
        self._greeted = greeting is not None and greeting.answered
        """The next message is an `initialize` that has its answer."""

    async def serve(self) -> None:
        with _stopping() as stopped:
            leave = self.connection.server.list_changes.join(self.connection.persona, self._changed)
            self.pipe.open(self._took)
            self._took(self._read)  # what was read before, and before anything that comes now
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
            send = _unsent if self._greeted else self._send
            self._greeted = False
            try:
                message = jsonrpc.read(line)
            except RpcError as error:
                send(error.as_message(None))
            else:
                self.connection.receive(message, send)

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


class Lines:
    """Bytes in, lines out. A line that is too long is dropped as it comes, and said once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Whole lines; None stands for one that was too long."""
        first, *rest = data.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        *whole, last = rest
        found: list[bytes | None] = [self._end(first), *whole]
        self._keep(last)
        return found

    def rest(self) -> bytes | None:
        """What came after the last line's end."""
        return self._end(b"")

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_BYTES:
            self._skipping, self._parts = True, []
        elif part and not self._skipping:
            self._parts.append(part)

    def _end(self, part: bytes) -> bytes | None:
        self._keep(part)
        line = None if self._skipping else b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return line


class Pipe:
    """Our ends of the two pipes. Both are non-blocking while it is open."""

    def __init__(self, source: int, target: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._target = source, target
        self._waiting: deque[memoryview] = deque()
        self._backlog = 0
        self._reading = False
        self.broken = False
        self.ended = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._blocking = {fd: os.get_blocking(fd) for fd in (source, target)}

    def open(self, took: Callable[[bytes], None]) -> None:
        self._took = took
        os.set_blocking(self._target, False)
        try:
            self._read_on()
            os.set_blocking(self._source, False)
        except PermissionError:  # a file: always ready, so it is read in one go, aside
            self._loop.run_in_executor(None, self._read_file)

    def _read_file(self) -> None:
        while data := os.read(self._source, CHUNK):
            self._loop.call_soon_threadsafe(self._took, data)
        self._loop.call_soon_threadsafe(self.ended.set)

    def _read_on(self) -> None:
        self._loop.add_reader(self._source, self._readable)
        self._reading = True

    def _readable(self) -> None:
        try:
            data = os.read(self._source, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._took(data)
            return
        self._stop_reading()
        self.ended.set()

    def _stop_reading(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._source)
            self._reading = False

    def write(self, line: bytes) -> None:
        if self.broken:
            return
        if not self._waiting:
            line = line[self._put(line) :]
            if not line:
                return
            self._loop.add_writer(self._target, self._writable)
            self._empty.clear()
        self._waiting.append(memoryview(line))
        self._backlog += len(line)
        if self._backlog > BACKLOG:
            self._stop_reading()

    @property
    def behind(self) -> bool:
        return self._backlog > BACKLOG

    def _put(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._target, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:  # nobody reads any more
            self.broken = True
            self._stop_reading()
            self.ended.set()
            return len(data)

    def _writable(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            put = self._put(first)
            self._backlog -= put
            if put < len(first):
                self._waiting[0] = first[put:]
                break
            self._waiting.popleft()
        if not self._waiting or self.broken:
            self._waiting.clear()
            self._backlog = 0
            self._loop.remove_writer(self._target)
            self._empty.set()
        if not self._reading and not self.ended.is_set() and self._backlog < BACKLOG // 2:
            self._read_on()

    async def drain(self, seconds: float) -> None:
        """Wait until what was written has been taken, within reason."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    def close(self) -> None:
        self._stop_reading()
        if self._waiting:
            self._loop.remove_writer(self._target)
        for fd, blocking in self._blocking.items():
            os.set_blocking(fd, blocking)
