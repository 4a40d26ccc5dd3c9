"""The sessions of the handshake era over HTTP, and the streams of answers of both eras.

A session belongs to the persona that opened it, and ends when idle.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolgate.faces.mcp.headers import Headers, HttpError, Pairs
from toolgate.faces.mcp.jsonrpc import (
    DROPPED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    REFUSED,
    UNSUPPORTED_VERSION,
    Id,
    Message,
    RpcError,
    write,
)
from toolgate.faces.mcp.protocol import ClientConnection
from toolgate.faces.mcp.server import McpServer

Receive = Callable[[], Awaitable[dict[str, Any]]]
SendEvent = Callable[[dict[str, Any]], Awaitable[None]]
QUIET = 15.0
"""Seconds without a word after which a stream is begun or kept alive, so that no proxy closes it."""
BACKLOG = 1000
"""Messages that may wait for a slow reader before progress and the like are dropped."""
CANCELLED = -32800
_STATUS = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404, MISSING_CAPABILITY: 400,
}  # fmt: skip
_EVENTS = (
    (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"),
)  # fmt: skip
IDLE = 1800.0
"""Seconds without a request or an open stream after which a session ends."""
MOST_OF_PERSONA = 100
"""Of one persona, whatever others have."""
RETRY = ((b"retry-after", b"5"),)


class ClientSession:
    def __init__(self, server: McpServer, persona: str) -> None:
        self.id = secrets.token_urlsafe(24)
        self.persona = persona
        self.connection = ClientConnection(server, persona, self._tell)
        self._outbox: Outbox | None = None
        self.used = time.monotonic()
        self._open = 0
        self._leave: Callable[[], None] | None = None

    @property
    def idle(self) -> bool:
        return self.resting and time.monotonic() - self.used > IDLE

    @property
    def resting(self) -> bool:
        return not self._open and not self.connection.running

    @contextmanager
    def busy(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self.used = time.monotonic()

    def _tell(self, message: Message) -> None:
        if self._outbox is not None:
            self._outbox.put(message)

    async def listen(self, found: Headers, receive: Receive, send: SendEvent) -> None:
        if not found.accepts_stream:
            raise HttpError(406, RpcError(REFUSED, "accept text/event-stream").as_message(None))
        if self._outbox is not None:
            raise HttpError(409, RpcError(REFUSED, "this session has its stream already").as_message(None))
        self._outbox = Outbox(self.connection)
        changed: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        leave = self.connection.server.list_changes.join(self.persona, lambda: self._tell(changed))
        try:
            with self.busy():
                await listen(self._outbox, receive, send, ((b"mcp-session-id", self.id.encode()),))
        finally:
            leave()
            self._outbox = None

    async def close(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox.wake()
        await self.connection.close()


class ClientSessions:
    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._sessions: dict[str, ClientSession] = {}
        self.most_each = MOST_OF_PERSONA

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, ident: str, persona: str) -> ClientSession | None:
        """Another persona's session does not exist."""
        found = self._sessions.get(ident)
        return found if found is not None and found.persona == persona else None

    async def begin(self, persona: str) -> ClientSession:
        for session in [each for each in self._sessions.values() if each.idle]:
            await self.end(session)
        mine = [each for each in self._sessions.values() if each.persona == persona]
        if len(mine) >= self.most_each:
            await self._make_room(persona, mine)
        session = ClientSession(self._server, persona)
        self._sessions[session.id] = session
        return session

    async def _make_room(self, persona: str, mine: list[ClientSession]) -> None:
        """Clients often leave without a word: what its persona has not used for longest gives way to what it wants now."""
        resting = [each for each in mine if each.resting]
        if not resting:
            told = f"{persona} has {len(mine)} sessions in use, the most there may be; end some"
            raise HttpError(429, RpcError(REFUSED, told).as_message(None), RETRY)
        await self.end(min(resting, key=lambda each: each.used))

    async def end(self, session: ClientSession) -> None:
        self._sessions.pop(session.id, None)
        await session.close()

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            await self.end(session)


class Outbox:
    """Messages on their way to a client over one response."""

    def __init__(self, connection: ClientConnection, ident: Id | None = None, streams: bool = True) -> None:
        self._connection = connection
        self.ident = ident
        """The request that is answered here."""
        self._streams = streams
        self._messages: deque[Message] = deque()
        self._asked: set[Id] = set()
        self._news = asyncio.Event()
        self.closed = False

    def put(self, message: Message) -> None:
        asks = "method" in message and "id" in message
        if self.closed or ("method" in message and not self._streams):
            if asks:
                self._nobody(message["id"])
            return
        if len(self._messages) >= BACKLOG and message.get("method") in DROPPED:
            return
        if asks:
            self._asked.add(message["id"])
        self._messages.append(message)
        self._news.set()

    def wake(self) -> None:
        self._news.set()

    def close(self) -> None:
        """Nobody reads any more: what was asked here will not be answered."""
        self.closed = True
        self._messages.clear()
        for ident in self._asked:
            self._nobody(ident)

    def _nobody(self, ident: Id) -> None:
        error = {"code": INVALID_REQUEST, "message": "the client cannot be asked on this response"}
        asyncio.get_running_loop().call_soon(
            self._connection.receive, {"jsonrpc": "2.0", "id": ident, "error": error}
        )

    async def next(self, task: asyncio.Task[Any] | None, seconds: float) -> Message | None:
        """The next message; None if there is none in time, or none will come."""
        if not self._messages and not (task is not None and task.done()):
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return None
        return self._messages.popleft() if self._messages else None


async def plain(send: SendEvent, status: int, body: Message | None = None, more: Pairs = ()) -> None:
    data = write(body) if body is not None else b""
    kind = [(b"content-type", b"application/json")] if data else []
    length = [(b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *more]})
    await send({"type": "http.response.body", "body": data})


async def stream(
    outbox: Outbox, task: asyncio.Task[Any] | None, receive: Receive, send: SendEvent, more: Pairs = (), *,
    goes_on: bool = False, statuses: bool = False,
) -> None:  # fmt: skip
    """Until the answer is out. If the client goes away, its call is cancelled, or goes on without it."""
    if task is not None:
        task.add_done_callback(lambda _: outbox.wake())
    leaving = asyncio.ensure_future(_until_gone(receive))
    writing = asyncio.ensure_future(_write(outbox, task, send, tuple(more), statuses))
    try:
        await asyncio.wait((leaving, writing), return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            await writing
    finally:
        outbox.close()
        for each in (leaving, writing):
            each.cancel()
        if task is not None and not task.done() and not goes_on:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.gather(leaving, writing, return_exceptions=True)


async def _write(
    outbox: Outbox, task: asyncio.Task[Any] | None, send: SendEvent, more: tuple[tuple[bytes, bytes], ...],
    statuses: bool,
) -> None:  # fmt: skip
    begun = False
    while True:
        message = await outbox.next(task, QUIET)
        if message is None and (task is None or task.done()):
            message = RpcError(CANCELLED, "Request cancelled").as_message(outbox.ident)
        final = message is not None and "method" not in message
        if final and not begun:
            assert message is not None
            code = message.get("error", {}).get("code", 0) if statuses else 0
            await plain(send, _STATUS.get(code, 200), message, more)
            return
        if not begun:
            await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *more]})
            begun = True
        data = event(message) if message is not None else b": still here\r\n\r\n"
        await send({"type": "http.response.body", "body": data, "more_body": not final})
        if final:
            return


def event(message: Message) -> bytes:
    return b"event: message\r\ndata: " + write(message) + b"\r\n\r\n"


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def listen(outbox: Outbox, receive: Receive, send: SendEvent, more: Pairs = ()) -> None:
    """A session's own stream, until the client goes or the session ends."""
    await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *more]})
    leaving = asyncio.ensure_future(_until_gone(receive))
    leaving.add_done_callback(lambda _: outbox.wake())
    try:
        await send({"type": "http.response.body", "body": b": open\r\n\r\n", "more_body": True})
        while not outbox.closed and not leaving.done():
            message = await outbox.next(None, QUIET)
            if outbox.closed or leaving.done():
                break
            data = event(message) if message is not None else b": still here\r\n\r\n"
            await send({"type": "http.response.body", "body": data, "more_body": True})
        if not leaving.done():
            await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
