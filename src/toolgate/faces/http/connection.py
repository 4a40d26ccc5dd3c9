"""One connection: uvicorn's, with a time for everything it may wait for.

uvicorn waits forever for the rest of a request's head, for a reader that does not read, and for the rest of a body whose
request was answered: none of them has reached the application, or all have left it. So they are looked at from here, once a
second.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from toolgate.faces.http.places import NOBODY, ConnectionPlaces

KEY = "toolgate.connection"
"""Where a request's scope has its connection."""
RATE = 16 << 10
"""Bytes a second that a body or an answer makes at least."""
WAITING = 32
"""Requests that may lie behind the one that is being answered."""
_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    b'{"code":"timeout","message":"the request did not arrive in time","fix":"send all of it at once"}'
)
_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    b'{"code":"invalid_args","message":"the head of the request is too large","fix":"send less"}'
)


class HttpConnection(HttpToolsProtocol):
    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None, *, places: ConnectionPlaces,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self._places = places
        self.address = ""
        self.owner = NOBODY
        self.timeout_keep_alive = places.limits.header_s  # type: ignore[assignment]
        application = self.app

        async def known(scope: Any, receive: Any, send: Any) -> None:
            scope[KEY] = self
            await application(scope, receive, send)

        self.app = known
        self._drained = 0
        self._waiting: tuple[object, ...] = ()
        """What it waits for; a new one begins anew."""
        self._since, self._unsent = 0.0, 0
        self._arriving: Literal["", "head", "body"] = ""
        self._head = 0
        """Bytes that came while the head was not complete."""

    @property
    def busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def belongs_to(self, name: str) -> None:
        self._places.known(self, name)
        self.timeout_keep_alive = self._places.limits.idle_s  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = Joined(transport)  # type: ignore[assignment]
        self.address = self.client[0] if self.client else ""
        self._places.arrived(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._places.left(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._arriving != "head":
            return
        self._head += len(data)
        if self._head > self._places.limits.header_bytes and not self.transport.is_closing():
            if not self.busy:
                self.transport.write(_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._arriving, self._head = "head", 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if (
            self._arriving == "head"
        ):  # what follows a body in chunks is no header of a request that was let in
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._arriving = "body"
        super().on_headers_complete()
        if len(self.pipeline) > WAITING:
            raise ValueError("too many requests behind one that is not answered")

    def on_message_complete(self) -> None:
        self._arriving = ""
        super().on_message_complete()

    def resume_writing(self) -> None:
        self._drained += 1
        super().resume_writing()

    def drop(self) -> None:
        self.transport.abort()

    def look(self, now: float) -> None:
        """End it if what it waits for is late."""
        waiting, seconds = self._wait()
        unsent = self.transport.get_write_buffer_size()
        if waiting != self._waiting:
            self._waiting, self._since, self._unsent = waiting, now, unsent
        elif not waiting or now - self._since <= seconds:
            return
        elif waiting[0] == "reader" and self._unsent - unsent >= RATE * seconds:
            self._since, self._unsent = now, unsent  # slow, but it reads
        elif waiting[0] == "head":
            self.transport.write(_LATE)
            self.transport.close()
        else:
            self._places.left(self)
            self.drop()

    def _wait(self) -> tuple[tuple[object, ...], float]:
        limits = self._places.limits
        if self.transport.is_closing() or self.flow.write_paused:
            return ("reader", self._drained), limits.write_s
        if self.busy:
            return (), 0.0
        if self._arriving == "head":
            return ("head", id(self.cycle)), limits.header_s
        if self._arriving == "body":
            return ("rest", id(self.cycle)), limits.header_s
        if self.cycle is None:
            # opened in advance: it goes earlier where places are wanted
            return ("first request",), limits.idle_s
        return (), 0.0


class Joined:
    """A transport that sends the head of an answer together with what follows at once. uvicorn writes them one after the
    other, and each sending lets go of Python's lock and has to get it again."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._call_soon = asyncio.get_running_loop().call_soon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._call_soon(self._flush)  # a stream may have nothing to say yet
            return
        self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""
