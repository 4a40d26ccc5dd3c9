"""The sessions of the handshake era over HTTP: each belongs to the persona that opened it, and ends when idle."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolgate.faces.mcp.headers import Headers, HttpError
from toolgate.faces.mcp.jsonrpc import REFUSED, Message, RpcError
from toolgate.faces.mcp.protocol import Connection
from toolgate.faces.mcp.server import Server
from toolgate.faces.mcp.streaming import Outbox, Receive, SendEvent, listen

IDLE = 1800.0
"""Seconds without a request or an open stream after which a session ends."""
MOST_EACH = 100
"""Of one persona, whatever others have."""
RETRY = ((b"retry-after", b"5"),)


class Session:
    def __init__(self, server: Server, persona: str) -> None:
        self.id = secrets.token_urlsafe(24)
        self.persona = persona
        self.connection = Connection(server, persona, self._tell)
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
        leave = self.connection.server.watching.join(self.persona, lambda: self._tell(changed))
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


class Sessions:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._sessions: dict[str, Session] = {}
        self.most_each = MOST_EACH

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, ident: str, persona: str) -> Session | None:
        """Another persona's session does not exist."""
        found = self._sessions.get(ident)
        return found if found is not None and found.persona == persona else None

    async def begin(self, persona: str) -> Session:
        for session in [each for each in self._sessions.values() if each.idle]:
            await self.end(session)
        mine = [each for each in self._sessions.values() if each.persona == persona]
        if len(mine) >= self.most_each:
            await self._make_room(persona, mine)
        session = Session(self._server, persona)
        self._sessions[session.id] = session
        return session

    async def _make_room(self, persona: str, mine: list[Session]) -> None:
        """Clients often leave without a word: what its persona has not used for longest gives way to what it wants now."""
        resting = [each for each in mine if each.resting]
        if not resting:
            told = f"{persona} has {len(mine)} sessions in use, the most there may be; end some"
            raise HttpError(429, RpcError(REFUSED, told).as_message(None), RETRY)
        await self.end(min(resting, key=lambda each: each.used))

    async def end(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        await session.close()

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            await self.end(session)
