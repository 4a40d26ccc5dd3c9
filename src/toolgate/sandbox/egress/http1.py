"""One side of an exchange: HTTP/1.1 by h11 on a pair of streams, every wait bounded and every byte counted.

Messages are taken apart and put together again, never copied, and each connection carries one request. So the two sides
cannot disagree about where a message ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import h11

from toolgate.core.errors import CallError, Cancelled, Code, InvalidArgs, TimedOut, TooLarge, Unavailable
from toolgate.core.hosts import authority_of
from toolgate.core.target import DEFAULT_PORTS, Target, target_of, tunnel_of
from toolgate.sandbox.egress.grant import Spent
from toolgate.sandbox.job import PROXY_PORT

# What a program asks the proxy for, in any of the ways in which clients ask proxies.

Headers = tuple[tuple[bytes, bytes], ...]

URL_HEADER = b"x-toolgate-url"
"""For clients that cannot send a whole https:// URL to a proxy: fetch in JavaScript."""
_HOP = frozenset(
    b"connection expect host keep-alive te trailer transfer-encoding upgrade content-length http2-settings".split()
)
_OURS = (b"proxy-", b"x-toolgate-")
_ITSELF = {("127.0.0.1", PROXY_PORT), ("localhost", PROXY_PORT)}


@dataclass(frozen=True, slots=True)
class Ask:
    method: str
    url: str
    target: Target
    headers: Headers
    """Those that go on to the host."""
    length: int | None
    """Of the body; None where it comes in chunks."""

    @property
    def tunnel(self) -> bool:
        return self.method == "CONNECT"

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for found, value in self.headers if found == name), "")


def url_of(request: h11.Request) -> str:
    """What was asked for, as it was written; for the record also where it is refused."""
    tunnel = request.method == b"CONNECT"
    urls = [value for name, value in request.headers if name == URL_HEADER and not tunnel]
    return (urls[0].partition(b"#")[0] if urls else request.target).decode("latin-1")


def ask_of(request: h11.Request) -> Ask:
    method, line = request.method.decode(), request.target.decode("latin-1")
    if any(name == b"upgrade" for name, _ in request.headers):
        raise InvalidArgs("the request asks for another protocol (Upgrade)", "use plain HTTP/1.1")
    headers = onward(request.headers)
    if method == "CONNECT":
        return Ask(method, line, tunnel_of(line), headers, 0)
    urls = [value for name, value in request.headers if name == URL_HEADER]
    if len(urls) > 1:
        raise InvalidArgs("x-toolgate-url is there twice", "send it once")
    if not urls and line.startswith(("/", "*")):
        raise InvalidArgs(
            "this is a proxy: the request names no host",
            "send the whole URL in the request line, or in the header x-toolgate-url",
        )
    url = url_of(request)
    target = target_of(url)
    if urls:
        _must_be_for_us(line)
    else:
        _must_agree(request, target)
    return Ask(method, url, target, headers, _length(request))


def onward(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Without those that are for the next hop only, ours, and those that Connection names."""
    headers = list(headers)
    named = {
        word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")
    }
    return tuple(
        (name, value)
        for name, value in headers
        if name not in _HOP and name not in named and not name.startswith(_OURS)
    )


def _length(request: h11.Request) -> int | None:
    found = dict(iter(request.headers))
    if b"transfer-encoding" in found:
        return None
    return int(found.get(b"content-length", b"0"))


def _must_be_for_us(line: str) -> None:
    if line.startswith("/"):
        return
    target = target_of(line)
    if (target.host, target.port) not in _ITSELF:
        raise InvalidArgs("the request line and x-toolgate-url name two targets", "send one of them")


def _must_agree(request: h11.Request, target: Target) -> None:
    for name, value in request.headers:
        if name == b"host":
            host, port = authority_of(value.decode("latin-1"))
            if (host, port or DEFAULT_PORTS[target.scheme]) != (target.host, target.port):
                raise InvalidArgs(
                    "the Host header names another host than the URL", "leave Host to the client"
                )


READ = 16 << 10
LINGER_S = 0.5
MAX_HEADERS = 100
_STATUS = {
    Code.INVALID_ARGS: 400,
    Code.NOT_ALLOWED: 403,
    Code.TOO_LARGE: 413,
    Code.RATE_LIMITED: 429,
    Code.UNAVAILABLE: 502,
    Code.TIMEOUT: 504,
}
# Control characters, line ends that are not CR LF, and folded lines: h11 would take some of them, others read them otherwise.
_ODD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n|\r\n[ \t]")
_LENGTH = re.compile(rb"(?mi)^content-length:(.*)$")
_CODING = re.compile(rb"(?mi)^transfer-encoding:")


class Wire:
    def __init__(
        self,
        role: type[h11.CLIENT] | type[h11.SERVER],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        spent: Spent,
        count: Callable[[int], None],
        peer: str,
    ) -> None:
        self.limits = spent.limits
        self.http = h11.Connection(role, max_incomplete_event_size=self.limits.head_bytes)
        self.reader, self.writer = streams
        self.writer.transport.set_write_buffer_limits(high=1)  # what is written has left when `write` returns
        self.count = count
        self.peer = peer
        self.answered = False
        """Whether a response has begun, after which no other can be sent."""
        self._take_piece = spent.take_piece
        self._ended = False
        self._reading: asyncio.Timeout | None = None

    async def request(self) -> h11.Request:
        """The head of the request, or `Cancelled` where nobody asked for anything."""
        try:
            async with self._patience():
                head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise InvalidArgs("the request ends within its head", "end it with an empty line") from error
            raise Cancelled("nothing was asked for") from error
        except asyncio.LimitOverrunError as error:
            most = self.limits.head_bytes
            raise TooLarge(f"the request's head is larger than {most:,} bytes", "send less in it") from error
        self.count(len(head))
        _check_head(head)
        self.http.receive_data(head)
        event = await self.event()
        assert isinstance(event, h11.Request)
        if event.http_version not in (b"1.0", b"1.1"):
            raise InvalidArgs("the request is not HTTP/1.0 or HTTP/1.1", "use HTTP/1.1")
        if event.http_version < b"1.1" and _CODING.search(head):
            raise InvalidArgs("HTTP/1.0 has no Transfer-Encoding", "send Content-Length")
        return event

    async def event(self) -> Any:
        while (event := self._next()) is h11.NEED_DATA:
            data = await self._read()
            self.count(len(data))
            self.http.receive_data(data)
            await asyncio.sleep(0)  # a stream that always has more must not keep the others waiting
        return event

    def _next(self) -> Any:
        try:
            event = self.http.next_event()
        except h11.RemoteProtocolError as error:
            # Not what h11 quotes: an answer may have a secret in it.
            why = str(error).partition(":")[0]
            raise self._blamed(f"{self.peer} sent what is not HTTP: {why}") from error
        if event is not h11.NEED_DATA:
            self._take_piece()
        return event

    async def _read(self) -> bytes:
        async with self._patience() as self._reading:
            try:
                return await self.reader.read(READ)
            finally:
                self._reading = None

    async def piece(self) -> bytes | None:
        """The next part of the body; None where it ends."""
        if self.http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        parts: list[bytes] = []
        event = h11.EndOfMessage() if self._ended else await self.event()
        # All that is here already: what comes in many small chunks is not handed on in as many.
        while isinstance(event, h11.Data):
            parts.append(bytes(event.data))
            event = self._next()
        self._ended = isinstance(event, h11.EndOfMessage)
        if not self._ended and event is not h11.NEED_DATA:
            raise self._blamed(f"{self.peer} ended in the middle of a message")
        return b"".join(parts) if parts else None

    async def whole(self) -> bytes:
        pieces = []
        while (piece := await self.piece()) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    async def send(self, event: h11.Event) -> None:
        try:
            data = self.http.send(event)
        except h11.LocalProtocolError as error:
            why = str(error).partition(":")[0]
            raise self._blamed(f"{self.peer} cannot be sent this: {why}") from error
        self.answered = self.answered or isinstance(event, h11.Response)
        if data:
            await self.write(data)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        async with self._patience():
            await self.writer.drain()
        if (
            self._reading is not None and not self._reading.expired()
        ):  # who is still being told something is not late with an answer
            self._reading.reschedule(asyncio.get_running_loop().time() + self.limits.idle_s)

    async def refuse(self, error: CallError) -> int:
        """Say why, in JSON; the status comes back."""
        status = _STATUS.get(error.code, 500)
        self.answered = True
        text = {"code": error.code, "message": error.message, "fix": error.fix}
        body = json.dumps({"error": text}).encode()
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "Content-Type: application/json",
            f"Content-Length: {len(body)}", f"X-Toolgate-Error: {error.code}", "Connection: close", "", "",
        ]  # fmt: skip
        await self.write("\r\n".join(lines).encode() + body)
        return status

    def cut(self) -> None:
        """End it so that a part does not look like the whole: HTTP/1.0 has no other sign of that than a broken connection."""
        if self.http.their_http_version == b"1.0":
            with contextlib.suppress(OSError):  # it broke already
                reset = struct.pack("ii", 1, 0)
                self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        self.writer.transport.abort()

    async def linger(self) -> None:
        """Take in what is still on its way, for a moment: closing at once would cut the answer off."""
        if self.writer.transport.is_closing():
            return
        with contextlib.suppress(OSError, TimeoutError, CallError):
            async with asyncio.timeout(LINGER_S):
                self.writer.write_eof()
                while data := await self.reader.read(READ):
                    self.count(len(data))
                    await asyncio.sleep(0)

    async def close(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self.writer.wait_closed()

    @contextlib.asynccontextmanager
    async def _patience(self) -> AsyncIterator[asyncio.Timeout]:
        """One wait for the other side: it has an end, and what breaks has a name."""
        try:
            async with asyncio.timeout(self.limits.idle_s) as patience:
                yield patience
        except TimeoutError as error:
            raise TimedOut(f"{self.peer} did nothing for {self.limits.idle_s:g} s", "try again") from error
        except OSError as error:
            if self.http.our_role is h11.SERVER:
                raise Cancelled(f"{self.peer} closed the connection") from error
            raise Unavailable(f"the connection to {self.peer} broke", "try again") from error

    def _blamed(self, message: str) -> CallError:
        if self.http.our_role is h11.SERVER:
            return InvalidArgs(message, "send one plain HTTP/1.1 request")
        return Unavailable(message, "ask another host, or for less")


def _check_head(head: bytes) -> None:
    if _ODD.search(head):
        raise InvalidArgs(
            "the request's head has a control character, a line end other than CR LF, or a folded line",
            "send one header to a line",
        )
    if head.count(b"\r\n") > MAX_HEADERS + 2:
        raise TooLarge(f"the request has more than {MAX_HEADERS} headers", "send fewer")
    lengths = _LENGTH.findall(head)
    if len(lengths) + len(_CODING.findall(head)) > 1 or any(b"," in length for length in lengths):
        raise InvalidArgs("the request says its length in more than one way", "send Content-Length once")
