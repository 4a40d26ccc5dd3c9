"""MCP over streamable HTTP: an ASGI application for one path, in both eras.

Handshake era: POST opens a session with `initialize`, GET is its stream, DELETE ends it. Stateless era: every POST stands
alone. Whose calls they are says `authenticate`, which is handed in; a session belongs to the persona that opened it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from toolgate.core.errors import CallError
from toolgate.core.names import HUMAN
from toolgate.facade import Gate
from toolgate.faces.mcp import headers, jsonrpc
from toolgate.faces.mcp.greeting import HANDSHAKE, VERSION_KEY
from toolgate.faces.mcp.headers import Headers, HttpError, refusal
from toolgate.faces.mcp.jsonrpc import Message, RpcError, RpcNotification, RpcRequest, classify, id_of
from toolgate.faces.mcp.protocol import ClientConnection
from toolgate.faces.mcp.server import McpServer, Options
from toolgate.faces.mcp.sessions import (
    MOST_OF_PERSONA,
    RETRY,
    ClientSession,
    ClientSessions,
    Outbox,
    Receive,
    SendEvent,
    plain,
    stream,
)

Scope = MutableMapping[str, Any]
Refused = Callable[[str], Awaitable[None]]
"""Told of each request by somebody who may not make it."""
Streams = Callable[[str], AbstractContextManager[None]]
"""A place for a stream of this persona's; raises where it has none left."""
Authenticate = Callable[[Scope], "str | Awaitable[str | None] | None"]


def application(
    gate: Gate, authenticate: Authenticate, *, console: str = "", hosts: Iterable[str] = (),
    origins: Iterable[str] = (), refused: Refused | None = None, streams: Streams | None = None,
    sessions: int = MOST_OF_PERSONA,
) -> McpApp:  # fmt: skip
    """For a site that mounts it at /mcp; `console` is where a human can answer in a browser."""
    server = McpServer(gate, Options(console=console))
    made = McpApp(server, authenticate, hosts=hosts, origins=origins, refused=refused, streams=streams)
    made.sessions.most_each = sessions
    return made


class McpApp:
    """`hosts` and `origins` are allowed besides loopback and the application's own."""

    def __init__(
        self, server: McpServer, authenticate: Authenticate, *, hosts: Iterable[str] = (), origins: Iterable[str] = (),
        max_bytes: int = jsonrpc.MAX_BYTES, refused: Refused | None = None, streams: Streams | None = None,
    ) -> None:  # fmt: skip
        self.server = server
        self._refused = refused
        self._streams: Streams = streams or (lambda persona: nullcontext())
        self.sessions = ClientSessions(server)
        self._authenticate = authenticate
        self._hosts, self._origins = frozenset(hosts), frozenset(origins)
        self._max_bytes = max_bytes
        self._alone: set[ClientConnection] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"MCP is spoken over http, not {scope['type']}")
        found = Headers(scope["headers"])
        try:
            headers.check_place(found, self._hosts, self._origins)
            persona = await self._persona(scope)
            await self._route(scope["method"], persona, found, receive, send)
        except HttpError as error:
            if self._refused is not None and error.status in (401, 403):
                said = (error.body or {}).get("error", {}).get("message", "")
                await self._refused(f"an MCP request was refused: {said}")
            await plain(send, error.status, error.body, error.headers)

    async def close(self) -> None:
        self.server.close()
        await self.sessions.close()
        for connection in list(self._alone):
            await connection.close()
        await self.server.suspended.close()

    async def _persona(self, scope: Scope) -> str:
        said = self._authenticate(scope)
        persona = await said if inspect.isawaitable(said) else said
        if not persona:
            raise HttpError(401, refusal("a persona's token is needed: Authorization: Bearer …"), _CHALLENGE)
        if persona == HUMAN:  # an agent with the human's token would answer its own questions
            raise HttpError(
                403, refusal("the human's token is for the console; give the client a persona's token")
            )
        return persona

    async def _route(
        self, method: str, persona: str, found: Headers, receive: Receive, send: SendEvent
    ) -> None:
        version = found.get("mcp-protocol-version")
        old = version is None or version in HANDSHAKE
        if method == "POST":
            message = await self._body(found, receive)
            if old and not (version is None and _enveloped(message)):
                await self._handshake_post(persona, message, found, receive, send)
            else:
                await self._stateless_post(persona, message, found, receive, send)
        elif method == "GET" and old:
            with self._stream(persona):
                await self._session(persona, found).listen(found, receive, send)
        elif method == "DELETE" and old:
            await self.sessions.end(self._session(persona, found))
            await plain(send, 204)
        else:
            raise HttpError(
                405,
                refusal("this is done with POST"),
                ((b"allow", b"GET, POST, DELETE" if old else b"POST"),),
            )

    def _stream(self, persona: str) -> AbstractContextManager[None]:
        return _Stream(self._streams(persona))

    async def _body(self, found: Headers, receive: Receive) -> Any:
        headers.check_post(found)
        raw = await _read(found, receive, self._max_bytes)
        try:
            return jsonrpc.read(raw)
        except RpcError as error:
            raise HttpError(400, error.as_message(None)) from None

    # --- the handshake era --------------------------------------------------------------------------------

    def _session(self, persona: str, found: Headers) -> ClientSession:
        ident = found.get("mcp-session-id")
        if ident is None:
            raise HttpError(400, refusal("the header Mcp-Session-Id is missing; begin with `initialize`"))
        session = self.sessions.find(ident, persona)
        if session is None:
            raise HttpError(404, refusal("there is no such session; begin again with `initialize`"))
        return session

    async def _handshake_post(
        self, persona: str, message: Any, found: Headers, receive: Receive, send: SendEvent
    ) -> None:
        taken = _classified(message)
        opening = isinstance(taken, RpcRequest) and taken.method == "initialize"
        if opening and found.get("mcp-session-id") is None:
            session = await self.sessions.begin(persona)
        else:
            session = self._session(persona, found)
        if not isinstance(taken, RpcRequest):
            session.connection.receive(message)
            await plain(send, 202)
            return
        outbox = Outbox(session.connection, taken.id, found.accepts_stream)
        with session.busy():
            task = session.connection.receive(message, outbox.put)
            if (
                opening and not session.connection.version
            ):  # the handshake failed: there is nothing to come back to
                await self.sessions.end(session)
            more = ((b"mcp-session-id", session.id.encode()),)
            await stream(outbox, task, receive, send, more, goes_on=True)

    # --- the stateless era --------------------------------------------------------------------------------

    async def _stateless_post(
        self, persona: str, message: Any, found: Headers, receive: Receive, send: SendEvent
    ) -> None:
        taken = _classified(message)
        if isinstance(taken, RpcNotification):
            headers.check_version(found)
            await plain(
                send, 202
            )  # there is nothing it could be about: closing the stream is how one cancels
            return
        if not isinstance(taken, RpcRequest):
            raise HttpError(
                400, RpcError(jsonrpc.INVALID_REQUEST, "Invalid request: nobody asked").as_message(None)
            )
        try:
            headers.check_routing(found, taken)
        except RpcError as error:
            raise HttpError(400, error.as_message(taken.id)) from None
        connection = ClientConnection(self.server, persona, _drop)
        connection.modern = True
        outbox = Outbox(connection, taken.id, found.accepts_stream)
        listens = taken.method == "subscriptions/listen"
        with self._stream(persona) if listens else nullcontext():
            self._alone.add(connection)
            try:
                task = connection.receive(message, outbox.put)
                await stream(outbox, task, receive, send, statuses=True)
            finally:
                self._alone.discard(connection)


class _Stream:
    """A place for a stream; where there is none, that is said before anything is sent."""

    def __init__(self, place: AbstractContextManager[None]) -> None:
        self._place = place

    def __enter__(self) -> None:
        try:
            self._place.__enter__()
        except CallError as error:
            raise HttpError(429, refusal(f"{error.message}; {error.fix}"), RETRY) from None

    def __exit__(self, *raised: Any) -> None:
        self._place.__exit__(*raised)


def _classified(message: Any) -> Any:
    try:
        return classify(message)
    except RpcError as error:
        raise HttpError(400, error.as_message(id_of(message))) from None


def _enveloped(message: Any) -> bool:
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


async def _read(found: Headers, receive: Receive, limit: int) -> bytes:
    said = found.get("content-length") or "0"
    if said.isdecimal() and len(said) < 20 and int(said) > limit:
        raise _too_large(limit)
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise HttpError(400, refusal("the request ended early"))
        part = event.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not event.get("more_body"):
            return b"".join(parts)


def _too_large(limit: int) -> HttpError:
    return HttpError(413, refusal(f"the message is larger than {limit:,} bytes"))


def _drop(message: Message) -> None:
    """A stateless exchange has no stream but its own."""


_CHALLENGE = ((b"www-authenticate", b'Bearer realm="toolgate"'),)
