"""Programs and servers that are slow on purpose: nobody is waited for without end."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from sandbox.egress.world import API, Asked, answer, echo, error, open_way, parsed, proxied, server

from .words import QUICK, lines


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
