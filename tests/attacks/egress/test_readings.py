"""Requests and answers that could be read in two ways, or are none: nobody reads them."""

from __future__ import annotations

import pytest

from sandbox.egress.world import API, answer, echo, error, open_way, parsed, raw, server
from toolgate.sandbox.egress.grant import EgressLimits

from .words import QUICK, lines

SMUGGLED = [
    ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 5"],
    ["Content-Length: 5", "Content-Length: 5"],
    ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: 5, 5"],
    ["Content-Length: +5"],
    ["Content-Length: -5"],
    ["Content-Length: 0x5"],
    ["Content-Length: 5 5"],
    ["Content-Length: " + "9" * 30],
    ["Content-Length : 5"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: chunked, identity"],
    ["Transfer-Encoding: xchunked"],
    ["Transfer-Encoding : chunked"],
    ["Transfer-Encoding:\x0bchunked"],
    ["Transfer-Encoding: \x00chunked"],
    ["X: y\nTransfer-Encoding: chunked"],
    ["X: y\rTransfer-Encoding: chunked"],
    ["X: y\r\n Transfer-Encoding: chunked"],
    ["X: y\r\n\tfolded"],
    [" X: y"],
    ["X y"],
    [": y"],
    ["X\x00: y"],
    ["X: y\x7f"],
    ["Host: evil.test"],
    ["Upgrade: websocket", "Connection: Upgrade"],
    ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
    ["x-toolgate-url: http://evil.test/"],
    ["x-toolgate-url: http://{api}/", "x-toolgate-url: http://evil.test/"],
]


@pytest.mark.parametrize("extra", SMUGGLED, ids=repr)
async def test_a_request_that_two_could_read_differently_is_read_by_nobody(extra: list[str]) -> None:
    async with server(echo) as place, open_way(place) as way:
        head = [f"POST {place.url()} HTTP/1.1", f"Host: {API}:{place.port}", *extra]
        body = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        status, answered = parsed(await way.say(lines(*head, body=body)))
        assert status == 400
        assert error(answered)["code"] == "invalid_args"
        assert place.asked == []
        assert not way.last.allowed


@pytest.mark.parametrize(
    "data",
    [
        b"GET {u} HTTP/1.1\nHost: {h}\n\n\r\n\r\n", b"GET {u} HTTP/1.1\r\nHost: {h}\n\r\n\r\n", b"GET  {u} HTTP/1.1\r\nHost: {h}\r\n\r\n",
        b"GET {u}  HTTP/1.1\r\nHost: {h}\r\n\r\n", b" GET {u} HTTP/1.1\r\nHost: {h}\r\n\r\n", b"\r\nGET {u} HTTP/1.1\r\nHost: {h}\r\n\r\n",
        b"GET {u} HTTP/2.0\r\nHost: {h}\r\n\r\n", b"GET {u} HTTP/0.9\r\nHost: {h}\r\n\r\n", b"GET {u}\r\n\r\n", b"GET {u} HTTP/1.1\r\n\r\n",
        b"G(T {u} HTTP/1.1\r\nHost: {h}\r\n\r\n", b"GET / HTTP/1.1\r\nHost: {h}\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: {h}\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\x05\x01\x00\r\n\r\n",
        b"CONNECT {h} HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        b"CONNECT http://{h}/ HTTP/1.1\r\nHost: {h}\r\n\r\n", b"CONNECT api.example.test HTTP/1.1\r\nHost: {h}\r\n\r\n",
        b"POST {u} HTTP/1.0\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_not_http_is_refused(data: bytes) -> None:
    async with server(echo) as place, open_way(place) as way:
        data = data.replace(b"{u}", place.url().encode()).replace(b"{h}", f"{API}:{place.port}".encode())
        assert parsed(await way.say(data))[0] == 400
        assert place.asked == []
        assert len(way.proxy.requests) == 1


@pytest.mark.parametrize(
    "chunks",
    [b"5\r\nab\r\n", b"zz\r\n", b"-1\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n"],
)
async def test_chunks_that_lie_about_their_length_are_not_sent_on_as_a_whole(chunks: bytes) -> None:
    async with server(echo) as place, open_way(place, limits=QUICK) as way:
        head = lines(
            f"POST {place.url()} HTTP/1.1", f"Host: {API}:{place.port}", "Transfer-Encoding: chunked"
        )
        status, _ = parsed(await way.say(head + chunks))
        assert status in (400, 504)
        assert place.asked == []


async def test_a_second_request_on_the_same_connection_is_not_read() -> None:
    async with server(answer()) as place, open_way(place) as way:
        one = lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}")
        got = await way.say(one + one + lines("GET http://evil.test/ HTTP/1.1", "Host: evil.test"))
        assert got.count(b"HTTP/1.1") == 1
        assert len(way.proxy.requests) == len(place.asked) == 1


@pytest.mark.parametrize(
    "page",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 200_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"",
    ],
    ids=["long", "many", "informed", "switched", "lengths", "coding", "status", "ssh", "nothing"],
)
async def test_an_answer_that_is_no_answer_is_told_as_such(page: bytes) -> None:
    limits = EgressLimits(pieces=1000)
    async with server(raw(page)) as place, open_way(place, limits=limits) as way:
        status, body = await way.get(place.url())
        assert status in (413, 502)
        assert error(body)["code"] in ("unavailable", "too_large")


async def test_a_server_cannot_pass_off_its_answer_as_the_proxys() -> None:
    async with (
        server(answer(b"{}", "X-Toolgate-Error: not_allowed\r\n", "403 Forbidden")) as place,
        open_way(place) as way,
    ):
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert b"x-toolgate" not in got.lower()
        got = await way.say(lines("GET http://evil.test/ HTTP/1.1", "Host: evil.test"))
        assert b"X-Toolgate-Error: not_allowed" in got
