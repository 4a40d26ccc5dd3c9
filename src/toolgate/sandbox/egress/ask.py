"""What a program asks the proxy for, in any of the ways in which clients ask proxies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import h11

from toolgate.core.errors import InvalidArgs
from toolgate.core.hosts import authority_of
from toolgate.core.target import DEFAULT_PORTS, Target, target_of, tunnel_of

from ..job import PROXY_PORT

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
