"""Before any route: is this request for us, from a page of ours, of a size and a speed we take?

A web page anywhere can make a browser talk to 127.0.0.1. So the Host must be a name we were told (a name that a stranger's
DNS points at us is not), and an Origin, where there is one, must be our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgate.core.errors import CallError, Code
from toolgate.faces.http.connection import KEY, RATE, HttpConnection
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.answers import SAFE, problem, problem_of
from toolgate.kits.web.auth import given, shown_by

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
NOBODYS_BODY = 64 << 10
"""Bytes without a token: a login form has far fewer, and the framework reads a body before it asks who sends it."""
CLOSE = {"Connection": "close"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""On every answer that does not bring its own. What the console may keep (its assets) says so itself."""
_HEADERS = tuple((name.lower().encode(), value.encode()) for name, value in HEADERS.items())


class Guard:
    def __init__(self, app: ASGIApp, site: ServerSite) -> None:
        self.app = app
        self.site = site
        self.hosts = frozenset(host.lower() for host in (*LOOPBACK, *site.hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        answer = _Answer(send, self.site)
        limits, who = self.site.places.limits, shown_by(self.site, scope)
        most = limits.body_bytes if who else min(NOBODYS_BODY, limits.body_bytes)
        refused = self._no_place(scope, who) or await self._refusal(scope, most)
        if refused is not None:
            return await refused(scope, receive, answer)
        try:
            await self.app(scope, _Body(receive, most, limits.body_s), answer)
        except _Unacceptable as error:
            if not answer.started:
                await _unacceptable(error)(scope, receive, answer)
        return None

    def _no_place(self, scope: Scope, who: str) -> Response | None:
        connection = scope.get(KEY)
        if not who or not isinstance(connection, HttpConnection):
            return None
        try:
            connection.belongs_to(who)
        except CallError as error:
            full = problem_of(error)
            full.headers.update(CLOSE)
            return full
        return None

    async def _refusal(self, scope: Scope, most: int) -> Response | None:
        longest = self.site.places.limits.header_bytes
        if _head(scope) > longest:
            return _unacceptable(
                _Unacceptable(431, f"the head of the request is larger than {longest:,} bytes")
            )
        hosts = given(scope, b"host")
        if len(hosts) != 1 or host_of(hosts[0]) not in self.hosts:
            named = self.site.shown(", ".join(hosts) or "nothing")
            await self.site.refused(f"a request came for the host {named}")
            return problem(
                Code.NOT_ALLOWED, f"this server is not {named}",
                "use the address that `toolgate up` printed; `--allow-host NAME` lets another name in",
            )  # fmt: skip
        stranger = _stranger(scope["method"], Headers(scope=scope)) if _of_browsers(scope) else ""
        if stranger:
            where = f"{scope['method']} {self.site.shown(scope['path'])}"
            await self.site.refused(f"{where} came from {self.site.shown(stranger)}")
            return problem(Code.NOT_ALLOWED, f"{where} came from another site", "open the console itself")
        length = next(iter(given(scope, b"content-length")), "0")
        if not length.isdigit() or len(length) > 15 or int(length) > most:
            return _unacceptable(_Unacceptable(413, _too_large(most)))
        return None


def _head(scope: Scope) -> int:
    sizes = sum([len(name) + len(value) for name, value in scope["headers"]])
    return sizes + len(scope.get("raw_path", b"")) + len(scope["query_string"])


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = header.strip().lower().rpartition(":")
    return (
        name
        if colon and port.isdigit() and (not name or name[-1] == "]" or ":" not in name)
        else header.lower()
    )


def _of_browsers(scope: Scope) -> bool:
    """Whether it says anything of where it comes from."""
    return any(name == b"origin" or name.startswith(b"sec-fetch-") for name, _ in scope["headers"])


def _stranger(method: str, headers: Headers) -> str:
    """Which other site this request comes from; empty for none."""
    for origin in headers.getlist("origin"):
        try:
            parts = urlsplit(origin)
        except ValueError:
            return origin
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != headers["host"].lower():
            return origin or "an empty origin"
    site = headers.get("sec-fetch-site", "none")
    visit = method in SAFE and headers.get("sec-fetch-mode") == "navigate"
    # a link on another page may lead here; it brings no cookie (SameSite=Strict), and nothing of ours can be framed
    if site not in ("none", "same-origin") and not (visit and headers.get("sec-fetch-dest") == "document"):
        return f"a {site} page"
    return ""


class _Unacceptable(HTTPException):
    """The body is too large, or too slow."""


def _too_large(most: int) -> str:
    return f"the body is larger than {most:,} bytes"


def _unacceptable(error: _Unacceptable) -> Response:
    code = Code.TIMEOUT if error.status_code == 408 else Code.TOO_LARGE
    answer = problem(code, error.detail, "send less, or faster", status=error.status_code)
    answer.headers.update(CLOSE)  # nobody reads the rest of it
    return answer


class _Body:
    """Counts what arrives, and does not wait forever for the rest of it, however it drips."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._most, self._seconds = receive, most, seconds
        self._got, self._whole = 0, False
        self._begun = asyncio.get_running_loop().time()

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._begun + self._seconds + self._got / RATE):
                message = await self._receive()
        except TimeoutError:
            raise _Unacceptable(408, f"the body did not arrive within {self._seconds:g} s") from None
        if message["type"] != "http.request":
            self._whole = True
            return message
        self._got += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._got > self._most:
            raise _Unacceptable(413, _too_large(self._most))
        return message


class _Answer:
    """Sends, with the headers that every answer has."""

    def __init__(self, send: Send, site: ServerSite) -> None:
        self._send, self._site = send, site
        self.started = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._site.counts.answers[message["status"]] += 1
            headers = message.get("headers", ())
            brought = {name.lower() for name, _ in headers}
            message["headers"] = [*headers, *(each for each in _HEADERS if each[0] not in brought)]
        await self._send(message)
