"""A program with full control of its code, and servers that help it, against the egress proxy."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import socket
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress

import pytest

from sandbox.egress.world import (
    API,
    Asked,
    answer,
    echo,
    error,
    local_names,
    open_way,
    parsed,
    proxied,
    raw,
    server,
)
from toolgate.sandbox.egress.limits import EgressLimits

QUICK = EgressLimits(connect_s=0.4, idle_s=0.3, total_s=1.0)


def lines(*parts: str | bytes, body: bytes = b"") -> bytes:
    return (
        b"\r\n".join(
            [part.encode("latin-1") if isinstance(part, str) else part for part in parts] + [b"", b""]
        )
        + body
    )


async def test_a_name_that_leads_elsewhere_later_does_not_lead_a_program_there() -> None:
    turns: list[str] = []

    async def rebinding(name: str) -> Sequence[str]:
        turns.append(name)
        return ["127.0.0.1"] if len(turns) == 1 else ["127.0.0.2"]

    async with server(answer()) as place, open_way(place, resolver=rebinding) as way:
        for _ in range(5):
            assert (await way.get(place.url()))[0] == 200
            assert way.last.address == "127.0.0.1"
        assert turns == [API]


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"]]
)
async def test_a_granted_name_that_leads_to_a_private_address_is_refused(answers: list[str]) -> None:
    async def resolver(_: str) -> Sequence[str]:
        return answers

    async with (
        server(answer()) as place,
        proxied([f"evil.example.test:{place.port}"], resolver=resolver) as way,
    ):
        status, body = await way.get(place.url(host="evil.example.test"))
        assert (status, error(body)["code"]) == (403, "not_allowed")
        got = await way.say(lines(f"CONNECT evil.example.test:{place.port} HTTP/1.1", "Host: x"))
        assert parsed(got)[0] == 403
        assert place.asked == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "file:///etc/passwd",
    ],
)
async def test_a_redirect_is_handed_back_and_following_it_is_checked_again(location: str) -> None:
    page = answer(b"", f"Location: {location}\r\n", "302 Found")
    async with server(page) as place, open_way(place, "169.254.169.254", "127.0.0.1:1", "[::1]") as way:
        head = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert f"location: {location}".encode() in head.lower()
        status, _ = await way.get(location)
        assert status in (400, 403)
        assert len(place.asked) == 1


ODD_TARGETS = [
    "http://allowed@evil.test/", "http://{api}@evil.test/", "http://{api}:80@evil.test/", "http://evil.test\\@{api}/",
    "http://evil.test/\\{api}", "http://evil.test#@{api}/", "http://{api}#@evil.test/", "http://evil.test?@{api}/",
    "http://{api}.evil.test/", "http://evil.test%2f@{api}/", "http://{api}%00.evil.test/", "http://{api}%2eevil.test/",
    "http:///{api}/", "http:/{api}/", "http:{api}/", "//{api}/", "http://[{api}]/", "http://{api}:80:80/", "http://{api}:/",
    "http://{api}:+80/", "http://{api}:0x50/", "http://{api}:99999/", "https:/\\{api}/", "ftp://{api}/", "gopher://{api}/_x",
    "file://{api}/etc/passwd", "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://0/", "http://[::]/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[fe80::1%25lo]/", "http://localhost/", "http://localhost.localdomain/", "http://169.254.169.254/",
    "http://metadata.google.internal/", "http://{api}..evil.test/", "http://\xe9vil.test/", "http://evil.test/ HTTP/1.1 {api}",
]  # fmt: skip


@pytest.mark.parametrize("target", ODD_TARGETS)
async def test_no_spelling_of_a_target_leads_out_of_the_grant(target: str) -> None:
    resolved: list[str] = []

    async def resolver(name: str) -> Sequence[str]:
        resolved.append(name)
        return await local_names(name)

    url = target.format(api=API)
    async with proxied([API], private=[f"{API}:80"], resolver=resolver) as way:
        for head in (
            [f"GET {url} HTTP/1.1", f"Host: {API}"],
            ["GET / HTTP/1.1", "Host: 127.0.0.1:3128", f"x-toolgate-url: {url}"],
        ):
            status, body = parsed(await way.say(lines(*head)))
            # What stands before a fragment is the URL, and nothing listens there.
            assert status in (400, 403) or (status == 502 and url.startswith(f"http://{API}#"))
            assert error(body)["fix"]
            assert "@" not in way.last.url.partition("?")[0].partition("#")[0]
        assert set(resolved) <= {API}


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
    ("head", "status"),
    [
        (["X: " + "a" * 40_000], 413),
        (["X: y"] * 101, 413),
        ([f"X-{number}: y" for number in range(3000)], 413),
    ],
)
async def test_a_head_has_an_end(head: list[str], status: int) -> None:
    async with server(answer()) as place, open_way(place) as way:
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}", *head))
        assert parsed(got)[0] == status
        assert parsed(await way.say(b"GET http://" + b"a" * 100_000))[0] == 413
        assert place.asked == []


async def test_a_flood_is_answered_for_a_while_and_then_nothing_listens() -> None:
    limits = EgressLimits(requests=20, patience=10, listed=5)
    told: list[int] = []
    async with (
        server(answer()) as place,
        open_way(place, limits=limits, on_request=lambda request: told.append(request.status)) as way,
    ):
        seen = [(await way.get(place.url()))[0] for _ in range(30)]
        assert seen == [200] * 20 + [429] * 10
        assert way.proxy.exhausted
        await asyncio.sleep(0.02)
        with pytest.raises(OSError):
            await way.get(place.url())
        assert told == seen
        assert len(way.proxy.requests) == 6
        assert way.last.reason == "25 more requests are not listed"
        assert len(place.asked) == 20


async def test_empty_connections_count_too_and_are_not_listed() -> None:
    async with proxied([API], limits=EgressLimits(requests=5, patience=5)) as way:
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert way.proxy.exhausted
        assert way.proxy.requests == ()


async def test_only_so_many_connections_are_held_and_the_next_waits_for_its_turn() -> None:
    limits = EgressLimits(connections=3, idle_s=0.3)
    async with server(answer()) as place, open_way(place, limits=limits) as way:
        idle = [await asyncio.open_connection("127.0.0.1", way.port) for _ in range(6)]
        began = time.monotonic()
        assert (await way.get(place.url()))[0] == 200
        assert 0.5 < time.monotonic() - began < 20
        for _, writer in idle:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def test_a_slow_program_is_not_waited_for() -> None:
    async with server(echo) as place, open_way(place, limits=QUICK) as way:
        assert parsed(await way.say(b"GET http://"))[0] == 504
        head = lines(f"POST {place.url()} HTTP/1.1", f"Host: {API}:{place.port}", "Content-Length: 100")
        status, body = parsed(await way.say(head + b"ab"))
        assert (status, error(body)["code"]) == (504, "timeout")

        began = time.monotonic()
        _, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(head)
        while len(way.proxy.requests) < 3:
            writer.write(b"x")
            await asyncio.sleep(0.1)
        assert time.monotonic() - began < 20
        assert "more than 1 s" in way.last.reason
        writer.transport.abort()


async def test_a_program_that_does_not_read_its_answer_is_not_waited_for() -> None:
    async with server(answer(b"x" * (8 << 20))) as place, open_way(place, limits=QUICK) as way:
        _, writer = await asyncio.open_connection("127.0.0.1", way.port, limit=1024)
        writer.write(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        began = time.monotonic()
        while not way.proxy.requests:
            await asyncio.sleep(0.02)
        assert time.monotonic() - began < 20
        assert "did nothing" in way.last.reason
        assert way.last.received < 8 << 20
        writer.transport.abort()


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]
)
async def test_a_server_that_says_no_more_is_not_waited_for(beginning: bytes) -> None:
    async def stuck(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        await writer.drain()
        await asyncio.sleep(60)

    async with server(stuck) as place, open_way(place, limits=QUICK) as way:
        began = time.monotonic()
        status, _ = await way.get(place.url())
        assert time.monotonic() - began < 20
        assert status == (200 if beginning.endswith(b"ab") else 504)
        assert "did nothing for 0.3 s" in way.last.reason


async def test_a_server_that_drips_for_ever_is_left() -> None:
    async def dripping(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with server(dripping) as place, open_way(place, limits=QUICK) as way:
        began = time.monotonic()
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert time.monotonic() - began < 20
        assert not got.endswith(b"0\r\n\r\n")  # it does not look whole
        assert "more than 1 s" in way.last.reason


async def test_a_host_that_never_takes_the_connection_is_left() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        filling = [socket.socket() for _ in range(4)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        hosts = [f"{API}:{port}"]
        async with proxied(hosts, private=hosts, limits=QUICK) as way:
            status, body = await way.get(f"http://{API}:{port}/")
            assert (status, error(body)["code"]) == (504, "timeout")
        for each in filling:
            each.close()


async def _endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


async def test_a_response_is_as_large_as_allowed_and_cut_so_that_it_shows() -> None:
    limits = EgressLimits(response_bytes=1 << 20)
    async with server(_endless) as place, open_way(place, limits=limits) as way:
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert 900_000 < len(got) < 1_200_000
        assert not got.endswith(b"0\r\n\r\n")
        assert "larger than 1,048,576 bytes" in way.last.reason
    async with server(answer(b"x" * 2_000_000)) as place, open_way(place, limits=limits) as way:
        status, body = await way.get(place.url())
        assert (status, error(body)["code"]) == (413, "too_large")


async def test_a_cut_response_shows_even_to_a_client_that_reads_until_the_end() -> None:
    async with server(_endless) as place, open_way(place, limits=EgressLimits(response_bytes=100_000)) as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(lines(f"GET {place.url()} HTTP/1.0"))
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_a_host_header_for_another_host_is_refused_and_the_right_one_is_written_anew() -> None:
    async with server(echo) as place, open_way(place) as way:
        for host in ("evil.test", API, f"{API}:1", f"x@{API}:{place.port}", "", f"{API}:{place.port}/"):
            assert parsed(await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {host}")))[0] == 400
        assert place.asked == []
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: API.EXAMPLE.test.:{place.port}"))
        assert parsed(got)[0] == 400
        assert place.asked[0].headers["host"] == f"{API}:{place.port}"


async def test_all_responses_of_a_program_together_have_a_limit_and_so_has_what_it_sends() -> None:
    limits = EgressLimits(down_bytes=250_000, up_bytes=250_000)
    async with server(answer(b"x" * 100_000)) as place, open_way(place, limits=limits) as way:
        for _ in range(2):
            assert (await way.get(place.url()))[1] == b"x" * 100_000
        await way.get(place.url())
        assert "has received more than 250,000 bytes" in way.last.reason
    async with server(echo) as place, open_way(place, limits=limits) as way:
        status, body = await way.get(place.url(), method="POST", body=b"x" * 300_000)
        assert (status, error(body)["code"]) == (413, "too_large")
        assert place.asked == []


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


async def test_a_million_tiny_chunks_do_not_keep_the_host_busy() -> None:
    bomb = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 300_000
    limits = EgressLimits(pieces=20_000)
    async with server(raw(bomb)) as place, open_way(place, limits=limits) as way:
        longest = 0.0

        async def heartbeat() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.001)
                longest = max(longest, time.monotonic() - began)

        beating = asyncio.create_task(heartbeat())
        await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        beating.cancel()
        assert "more than 20,000 chunks" in way.last.reason
        assert longest < 1.0
        head = lines(
            f"POST {place.url()} HTTP/1.1", f"Host: {API}:{place.port}", "Transfer-Encoding: chunked"
        )
        await way.say(head + b"1\r\nx\r\n" * 40_000)
        assert "more than 20,000 chunks" in way.last.reason


async def test_a_packed_bomb_passes_as_the_few_bytes_that_it_is() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20), 9)
    async with server(answer(bomb, "Content-Encoding: gzip\r\n")) as place, open_way(place) as way:
        assert await way.get(place.url()) == (200, bomb)
        assert way.last.received < 100_000


async def test_a_tunnel_goes_to_granted_ports_only_and_carries_both_ways() -> None:
    async with server(answer()) as place, open_way(place, limits=QUICK) as way:
        for other in (
            f"{API}:22",
            f"{API}:{place.port + 1}",
            f"evil.test:{place.port}",
            "127.0.0.1:22",
            f"{API}:0",
            f"x@{API}:1",
        ):
            got = await way.say(lines(f"CONNECT {other} HTTP/1.1", "Host: x"))
            assert parsed(got)[0] in (400, 403)
        inner = lines("GET /inside HTTP/1.1", "Host: x")
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x") + inner)
        assert got.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert got.endswith(b"hello")
        assert place.asked[0].line == "GET /inside HTTP/1.1"


async def test_a_tunnel_has_limits_too() -> None:
    limits = EgressLimits(response_bytes=200_000, idle_s=0.3)
    async with server(_endless) as place, open_way(place, limits=limits) as way:
        inner = lines("GET /inside HTTP/1.1", "Host: x")
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x") + inner)
        assert len(got) < 400_000
        assert "larger than 200,000 bytes" in way.last.reason
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x"))
        assert got == b"HTTP/1.1 200 Connection established\r\n\r\n"
        assert "nothing went through the tunnel" in way.last.reason


async def test_a_program_cannot_forge_headers_or_targets_through_its_url() -> None:
    async with server(echo) as place, open_way(place) as way:
        await way.get(place.url("/%0d%0aX-Evil:%201"))
        assert place.asked[0].line == "GET /%0d%0aX-Evil:%201 HTTP/1.1"
        assert "x-evil" not in place.asked[0].headers


async def test_a_server_cannot_pass_off_its_answer_as_the_proxys() -> None:
    async with (
        server(answer(b"{}", "X-Toolgate-Error: not_allowed\r\n", "403 Forbidden")) as place,
        open_way(place) as way,
    ):
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert b"x-toolgate" not in got.lower()
        got = await way.say(lines("GET http://evil.test/ HTTP/1.1", "Host: evil.test"))
        assert b"X-Toolgate-Error: not_allowed" in got


async def test_nothing_is_left_when_a_program_ends_in_the_middle_of_everything() -> None:
    async def hanging(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbeginning")
        await writer.drain()
        await asyncio.sleep(60)

    async def slow(name: str) -> Sequence[str]:
        if name == API:
            return await local_names(name)
        await asyncio.sleep(60)
        return []

    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with server(hanging) as place:
            clients: list[asyncio.Task[bytes]] = []
            async with open_way(place, "slow.example.test", resolver=slow) as way:
                host = f"Host: {API}:{place.port}"
                for data in (
                    b"GET ht",
                    lines(f"GET {place.url()} HTTP/1.1", host),
                    lines(f"POST {place.url()} HTTP/1.1", host, "Content-Length: 9"),
                    lines(f"CONNECT {API}:{place.port} HTTP/1.1", host),
                    lines("GET http://slow.example.test/ HTTP/1.1", "Host: slow.example.test"),
                ):
                    clients.append(asyncio.create_task(way.say(data)))
                await asyncio.sleep(0.1)
            await asyncio.gather(*clients)
            ended = [request.reason for request in way.proxy.requests]
            assert ended == ["the program ended first"] * 4
        gc.collect()
    await asyncio.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("steps", range(12))
async def test_nothing_is_left_at_whatever_moment_a_program_ends(steps: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        async with proxied([API]) as way:
            clients = [socket.create_connection(("127.0.0.1", way.port)) for _ in range(4)]
            for client in clients:
                client.sendall(b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
            for _ in range(steps):
                await asyncio.sleep(0)
        for client in clients:
            client.close()
        gc.collect()
    assert [str(each.message) for each in warned] == []
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_thousand_requests_leave_no_memory_descriptors_or_tasks() -> None:
    limits = EgressLimits(requests=2000, listed=10)
    async with server(answer()) as place, open_way(place, limits=limits) as way:
        for _ in range(20):
            await way.get(place.url())
        gc.collect()
        before = len(gc.get_objects()), len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            await asyncio.gather(*(way.get(place.url()) for _ in range(10)))
        place.asked.clear()
        await asyncio.sleep(0.05)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before[1] + 1
        assert len(gc.get_objects()) < before[0] + 2000


async def test_the_record_names_where_a_tunnel_went_whatever_its_headers_say() -> None:
    async with server(answer()) as place, open_way(place, limits=QUICK) as way:
        await way.say(
            lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x", "x-toolgate-url: http://harmless.test/")
        )
        assert (way.last.method, way.last.url) == ("CONNECT", f"{API}:{place.port}")


@pytest.mark.parametrize("method", ["TRACE", "trace", "connect", "Connect"])
async def test_methods_that_send_back_or_hide_are_never_forwarded_in_any_case(method: str) -> None:
    async with server(echo) as place, open_way(place) as way:
        assert (await way.get(place.url(), method=method))[0] == 403
        assert place.asked == []


async def test_a_server_that_never_finishes_its_handshake_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"{API}:{mute.getsockname()[1]}"
        async with proxied([place], private=[place], limits=QUICK) as way:
            status, body = await way.get(f"https://{place}/")
            assert (status, error(body)["code"]) == (504, "timeout")

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 no TLS here\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listening:
        place = f"{API}:{listening.sockets[0].getsockname()[1]}"
        async with proxied([place], private=[place], limits=QUICK) as way:
            assert (await way.get(f"https://{place}/"))[0] == 502
