"""Streams to and from one server: a program of ours by its pipes, or an address by streamable HTTP or the old SSE.

The SDK's own transport of programs inherits more of the environment, and buffers a line however long it grows; the one
here does neither. Answers are bounded, before anybody parses them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from toolgate.core import wire
from toolgate.core.errors import TooLarge, Unavailable
from toolgate.features.servers.active_calls import request_refused
from toolgate.features.servers.results import words

log = logging.getLogger("toolgate.upstream")
MAX_MESSAGE = wire.MAX_BYTES
MAX_GARBAGE = 100
FLOOD, FLOOD_SECONDS = 5000, 5.0
"""More messages than this in so many seconds are no conversation."""
MOST_OWED = 256
"""Answers that may wait for a server to take them."""
STDERR_LINES, STDERR_WIDTH = 200, 500
STDERR_A_MINUTE = 100
GRACE = 2.0
READ_SECONDS = 24 * 3600.0
"""A stream may be silent for long; calls have time limits of their own."""
LAUNCHER = str(Path(__file__).with_name("launch.py"))


# A program: started with an environment of its own, spoken to by pipes, ended with the gate.


@dataclass
class ServerProgram:
    """What is started. `scrub` takes the values of secrets out of a text."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    scrub: Callable[[str], str]
    lost: Callable[[str], None]
    """Told once, why nothing more will be heard from it."""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=STDERR_LINES))
    pid: int = 0
    owed: Counter[Any] = field(default_factory=Counter)
    """Ids of what it has asked and not been answered."""


def found(command: str, env: Mapping[str, str], cwd: Path) -> str:
    """Where the command is, by the PATH that the server will have."""
    path = str(cwd / command) if "/" in command else shutil.which(command, path=env.get("PATH", ""))
    if path is None or not os.access(path, os.X_OK) or os.path.isdir(path):
        raise Unavailable(f"the command {command!r} is not found", "install it, or correct `command`")
    return path


@asynccontextmanager
async def speaking(program: ServerProgram) -> AsyncIterator[tuple[Any, Any]]:
    """The streams to and from a running server; when this ends, the server has ended."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", LAUNCHER, str(os.getpid()), *program.argv,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=dict(program.env), cwd=program.cwd, start_new_session=True, limit=MAX_MESSAGE,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise Unavailable(f"it cannot be started: {error}", "check `command`, `args` and `cwd`") from None
    program.pid = process.pid
    heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_say = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_listen(program, process, heard)),
        asyncio.create_task(_say(program, process, to_say)),
        asyncio.create_task(_stderr(program, process)),
    ]
    try:
        yield incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, tasks)
            for stream in (heard, incoming, outgoing, to_say):
                stream.close()


async def _listen(program: ServerProgram, process: asyncio.subprocess.Process, heard: Any) -> None:
    assert process.stdout is not None
    garbage = 0
    lately: deque[float] = deque(maxlen=FLOOD)
    why = "it closed its output"
    try:
        while line := await process.stdout.readline():
            lately.append(now := time.monotonic())
            if len(lately) == FLOOD and now - lately[0] < FLOOD_SECONDS:
                why = f"it sent {FLOOD:,} messages in {now - lately[0]:.1f} s"
                break
            wire.check_size(line)
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                garbage += not line.isspace()
                if garbage > MAX_GARBAGE:
                    why = "it writes to its output what is not MCP"
                    break
                continue
            _asked(program.owed, message)
            if program.owed.total() > MOST_OWED:
                why = f"it asked {MOST_OWED} times and did not take the answers"
                break
            await heard.send(SessionMessage(message))
        else:
            code = await _exit_code(process)
            why = "it closed its output" if code is None else f"it ended with exit code {code}"
    except TooLarge as error:
        why = f"it sent too much at once: {error.message}"
    except ValueError:
        why = f"it sent a message of more than {MAX_MESSAGE:,} bytes"
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        why = "the connection was closed"
    program.lost(why)
    heard.close()  # whoever waits for an answer hears that none will come


def _asked(owed: Counter[Any], message: Any) -> None:
    """What a server asks it is owed an answer to, until it takes it back."""
    if isinstance(message, JSONRPCRequest):
        owed[message.id] += 1
    elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
        _settled(owed, (message.params or {}).get("requestId"))


def _settled(owed: Counter[Any], ident: Any) -> None:
    if isinstance(ident, str | int) and ident in owed:
        owed[ident] -= 1
        if not owed[ident]:
            del owed[ident]


async def _exit_code(process: asyncio.subprocess.Process) -> int | None:
    """Its output is closed, so it is about to end; one that lives on without output has no code."""
    for _ in range(50):
        if process.returncode is not None:
            break
        await asyncio.sleep(0.01)
    return process.returncode


async def _say(program: ServerProgram, process: asyncio.subprocess.Process, to_say: Any) -> None:
    assert process.stdin is not None
    try:
        async for message in to_say:
            if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                _settled(program.owed, message.message.id)
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        program.lost("it closed its input")


async def _stderr(program: ServerProgram, process: asyncio.subprocess.Process) -> None:
    """Into the log, so many lines a minute; the last ones are kept to explain a failure."""
    assert process.stderr is not None
    minute, lines = 0, 0
    while chunk := await _some_line(process.stderr):
        text = words(chunk.decode("utf-8", "replace").rstrip(), program.scrub, STDERR_WIDTH)
        if not text:
            continue
        program.tail.append(text)
        if (now := int(time.monotonic() // 60)) != minute:
            minute, lines = now, 0
        lines += 1
        if lines <= STDERR_A_MINUTE:
            log.info("%s: %s", program.name, text)
        elif lines == STDERR_A_MINUTE + 1:
            log.warning("%s writes much to stderr; the rest of this minute is left out", program.name)


async def _some_line(stream: asyncio.StreamReader) -> bytes:
    """A line; of one without end, a piece."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError:
        return await stream.read(65536)


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Close its input, wait, ask, then kill: it and whatever it started in its group. Every wait is bounded."""
    assert process.stdin is not None
    process.stdin.close()
    for step in (None, signal.SIGTERM, signal.SIGKILL):
        if step is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, step)
        if await _gone(process, GRACE if step is not signal.SIGKILL else 5.0):
            break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what it left behind in its group
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    transport = getattr(
        process, "_transport", None
    )  # nothing public closes the pipes of a process that is gone
    if transport is not None:
        transport.close()


async def _gone(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Not `process.wait()`, which also waits for pipes that a child of the server may hold open."""
    until = time.monotonic() + seconds
    while process.returncode is None:
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True


# An address.


class _Bounded(httpx2.AsyncByteStream):
    """A body whose lines (SSE) or whole (JSON) may have so many bytes."""

    def __init__(self, inner: Any, by_line: bool) -> None:
        self._inner = inner
        self._by_line = by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, count = 0, wire.Count()
        async for chunk in self._inner:
            end = chunk.rfind(b"\n") if self._by_line else -1
            size = len(chunk) - end - 1 if end >= 0 else size + len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.ReadError(f"a message of more than {MAX_MESSAGE:,} bytes")
            if count.feed(chunk[: end + 1] if end >= 0 else chunk) > wire.MAX_VALUES:
                raise httpx2.ReadError(f"a message of more than {wire.MAX_VALUES:,} values")
            if end >= 0:
                count = wire.Count()
                count.feed(chunk[end + 1 :])
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Guarded(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            request_refused()
            raise
        by_line = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _Bounded(response.stream, by_line)
        return response


def _client(headers: Mapping[str, str], seconds: float) -> httpx2.AsyncClient:
    """Nothing comes from the environment: no proxy, no credentials from a file."""
    return httpx2.AsyncClient(
        headers=dict(headers), timeout=httpx2.Timeout(seconds, read=READ_SECONDS), transport=_Guarded(),
        trust_env=False, follow_redirects=False,
    )  # fmt: skip


@asynccontextmanager
async def streamable(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        _client(headers, seconds) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def events(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[tuple[Any, Any]]:
    def factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return _client(headers or {}, seconds)

    async with sse_client(
        url, dict(headers), timeout=seconds, sse_read_timeout=READ_SECONDS, httpx_client_factory=factory
    ) as streams:
        yield streams
