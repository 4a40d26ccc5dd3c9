"""Too many, too much, too large: everything has an end, and that it was cut shows."""

from __future__ import annotations

import asyncio
import gzip
import time
from contextlib import suppress

import pytest

from sandbox.egress.world import API, answer, echo, error, open_way, parsed, proxied, raw, server
from toolgate.sandbox.egress.grant import EgressLimits

from .words import endless, lines


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


async def test_a_response_is_as_large_as_allowed_and_cut_so_that_it_shows() -> None:
    limits = EgressLimits(response_bytes=1 << 20)
    async with server(endless) as place, open_way(place, limits=limits) as way:
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert 900_000 < len(got) < 1_200_000
        assert not got.endswith(b"0\r\n\r\n")
        assert "larger than 1,048,576 bytes" in way.last.reason
    async with server(answer(b"x" * 2_000_000)) as place, open_way(place, limits=limits) as way:
        status, body = await way.get(place.url())
        assert (status, error(body)["code"]) == (413, "too_large")


async def test_a_cut_response_shows_even_to_a_client_that_reads_until_the_end() -> None:
    async with server(endless) as place, open_way(place, limits=EgressLimits(response_bytes=100_000)) as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(lines(f"GET {place.url()} HTTP/1.0"))
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


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


async def test_a_tunnel_has_limits_too() -> None:
    limits = EgressLimits(response_bytes=200_000, idle_s=0.3)
    async with server(endless) as place, open_way(place, limits=limits) as way:
        inner = lines("GET /inside HTTP/1.1", "Host: x")
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x") + inner)
        assert len(got) < 400_000
        assert "larger than 200,000 bytes" in way.last.reason
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x"))
        assert got == b"HTTP/1.1 200 Connection established\r\n\r\n"
        assert "nothing went through the tunnel" in way.last.reason
