"""What is left when a program has ended: no descriptor, no task, no memory."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import warnings
from collections.abc import Sequence

import pytest

from sandbox.egress.world import API, Asked, answer, local_names, open_way, proxied, server
from toolgate.sandbox.egress.grant import EgressLimits

from .words import lines


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


@pytest.mark.sample(4)
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
