"""One client's connections, streams and half-sent requests take nobody else's place, least of all the human's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.faces.http.connection import HttpConnection
from toolgate.faces.http.guard import NOBODYS_BODY

from .serving import CONFIG, PATIENCE, House, house

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
QUICK = {"header_s": 0.5, "body_s": 0.5, "write_s": 0.5, "idle_s": 0.5}
SMALL = {
    "connections": 20,
    "reserved": 40,
    "address_connections": 30,
    "persona_connections": 8,
    "persona_streams": 4,
}


@contextlib.asynccontextmanager
async def lines(here: House, count: int, sent: bytes) -> AsyncIterator[list[Line]]:
    """So many connections, each of which has sent this and goes on saying nothing."""
    port = int(here.url.rpartition(":")[2])
    opened: list[Line] = []
    try:
        for _ in range(count):
            line = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), PATIENCE)
            opened.append(line)
            line[1].write(sent)
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


def request(here: House, name: str, path: str = "/api/v1/stream", more: str = "") -> bytes:
    bearer = f"Authorization: Bearer {here.site.tokens.of(name)}\r\n" if name else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}{more}\r\n".encode()


async def status_of(line: Line) -> int:
    """The status of the answer; 0 where there was none."""
    with contextlib.suppress(ConnectionError):
        said = await asyncio.wait_for(line[0].readline(), PATIENCE)
        return int(said.split()[1]) if said else 0
    return 0


async def ended(line: Line) -> bool:
    """Whether the server ends it, in time."""
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(line[0].read(1 << 16), PATIENCE):
            pass
    return True


async def human_works(here: House) -> None:
    """Opens the inbox, answers a question and pauses everybody."""
    asked = await here.gate.call("door.open", {"room": "lab"}, persona="other", wait=False)
    assert asked.data is not None
    async with here.browser() as browser:
        page = await browser.get(f"{here.site.base}/")
        assert page.status_code == 200
        assert "door.open" in page.text
    async with here.client("human") as client:
        answer = await client.post(f"/api/v1/approvals/{asked.data['question']}", json={"answer": "approve"})
        assert answer.status_code == 200, answer.text
        assert (await client.post("/api/v1/pause", json={})).json()["paused"] is True
        assert (await client.post("/api/v1/resume", json={})).json()["paused"] is False
        async with client.stream("GET", "/api/v1/stream") as stream:
            assert stream.status_code == 200


def config(**http: Any) -> dict[str, Any]:
    return CONFIG | {"http": http}


@contextlib.asynccontextmanager
async def limited(tmp_path: Path, **http: Any) -> AsyncIterator[House]:
    root = tmp_path / "project"
    root.mkdir()
    async with house(root, config(**http)) as here:
        yield here


async def test_two_hundred_streams_of_one_persona_keep_nobody_out(here: House) -> None:
    async with lines(here, 200, request(here, "helper")) as opened:
        found = [await status_of(line) for line in opened]
        most = here.site.places.limits.persona_streams
        assert found.count(200) == most
        assert found.count(429) == 200 - most
        async with here.client("other") as other, other.stream("GET", "/api/v1/stream") as stream:
            assert stream.status_code == 200
        await human_works(here)


async def test_a_thousand_half_sent_requests_keep_nobody_out(here: House) -> None:
    async with lines(here, 1010, b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
        await human_works(here)
        async with here.client("other") as other:
            done = await other.post("/api/v1/calls", json={"tool": "system.ping"})
            assert done.json()["ok"]


async def test_a_thousand_idle_connections_keep_nobody_out(here: House) -> None:
    """They have made one whole request each and stay open, as a client's pool does."""
    ask = "/api/v1/health/live"
    async with lines(here, 500, request(here, "helper", ask)), lines(here, 510, request(here, "", ask)):
        await human_works(here)


async def test_a_persona_that_holds_all_its_places_is_told_and_others_are_served(tmp_path: Path) -> None:
    async with limited(tmp_path, **SMALL) as here:
        body = json.dumps({"tool": "door.hold"})
        call = request(
            here,
            "helper",
            "/api/v1/calls",
            f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n",
        )
        async with lines(here, 8, call.replace(b"GET", b"POST", 1) + body.encode()):
            async with here.client("helper") as helper:
                async with asyncio.timeout(PATIENCE):
                    while (answer := await helper.get("/api/v1/health")).status_code == 200:
                        await asyncio.sleep(0.01)
            assert answer.status_code == 429
            assert answer.json()["code"] == "rate_limited"
            assert "helper has 8 requests under way" in answer.json()["message"]
            assert "http.persona_connections" in answer.json()["fix"]
            assert int(answer.headers["Retry-After"]) >= 1
            async with here.client("other") as other:
                assert (await other.get("/api/v1/health")).status_code == 200
            await human_works(here)
        here.hold.set()
        async with here.client("helper") as helper:
            async with asyncio.timeout(PATIENCE):
                while (await helper.get("/api/v1/health")).status_code != 200:
                    await asyncio.sleep(0.01)


async def test_personas_that_hold_every_place_together_keep_the_human_not_out(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, **SMALL | {"connections": 6}) as here,
        lines(here, 4, request(here, "helper")) as first,
        lines(here, 4, request(here, "other")) as second,
    ):
        found = [await status_of(line) for line in first + second]
        assert (found.count(200), found.count(503)) == (6, 2)
        await human_works(here)


async def test_a_persona_that_was_full_has_its_places_again_when_its_streams_end(tmp_path: Path) -> None:
    async with limited(tmp_path, **SMALL) as here:
        for _ in range(3):
            async with lines(here, 4, request(here, "helper")) as opened:
                assert [await status_of(line) for line in opened] == [200] * 4
            async with asyncio.timeout(PATIENCE):
                while here.site.places.streams["helper"]:
                    await asyncio.sleep(0.01)


SLOW = {
    "nothing": b"",
    "half a request line": b"GET / HT",
    "half the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\r\n",
    "half a body": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nab",
    "half a call": b"POST /api/v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\nBEARER\r\n{",
    "half a message": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\nContent-Type: application/json\r\nBEARER\r\n{",
    "half a chunk": b"POST /api/v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nBEARER\r\n5\r\n{",
    "the rest of a refused one": b"POST /api/v1/calls HTTP/1.1\r\nHost: nobody.example\r\nContent-Length: 99\r\n\r\n{",
    "half a second one": b"GET /api/v1/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nBEARER\r\nGET / HT",
}  # fmt: skip


@pytest.mark.parametrize("drip", [False, True], ids=["quiet", "dripping"])
async def test_a_request_that_does_not_end_is_ended(tmp_path: Path, drip: bool) -> None:
    async with limited(tmp_path, **QUICK) as here, contextlib.AsyncExitStack() as stack:
        bearer = f"Authorization: Bearer {here.site.tokens.of('helper')}\r\n\r\n".encode()
        opened = {
            case: (await stack.enter_async_context(lines(here, 1, sent.replace(b"BEARER\r\n", bearer))))[0]
            for case, sent in SLOW.items()
        }
        dripping = [asyncio.create_task(_drip(line)) for line in opened.values() if drip]
        for case, line in opened.items():
            assert await ended(line), case
        for task in dripping:
            task.cancel()


async def _drip(line: Line) -> None:
    with contextlib.suppress(ConnectionError):
        while not line[1].is_closing():
            line[1].write(b" ")
            await asyncio.sleep(0.05)


async def test_a_reader_that_does_not_read_is_dropped_and_its_place_is_free(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, **QUICK) as here,
        lines(here, 1, request(here, "helper")) as (line,),
    ):
        assert await status_of(line) == 200
        line[1].transport.pause_reading()  # type: ignore[attr-defined]
        (place,) = here.site.places.each()
        assert isinstance(place, HttpConnection)
        for end in (place.transport, line[1].transport):  # else the system keeps megabytes for them
            sock = end.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for number in range(200):
            await here.gate.call("system.ping", persona="helper", reason=f"{number:01000}")
        async with asyncio.timeout(PATIENCE):
            while here.site.places.streams or here.site.places.each():
                await asyncio.sleep(0.02)
        assert not here.site.notifier.followers


async def test_what_is_too_long_is_refused_before_it_is_kept(here: House) -> None:
    long = here.site.places.limits.header_bytes
    async with here.client("helper") as helper:
        said = await helper.get("/api/v1/health", headers={"X-Long": "x" * long})
        assert said.status_code in (400, 431)
        said = await helper.get("/api/v1/health", params={"x": "x" * long})
        assert said.status_code in (400, 431)
    async with here.client() as nobody:
        said = await nobody.post("/api/v1/calls", content=b"x" * (NOBODYS_BODY + 1))
        assert (said.status_code, said.json()["code"]) == (413, "too_large")


async def test_mcp_sessions_and_streams_of_a_persona_are_counted(tmp_path: Path) -> None:
    async with limited(tmp_path, **SMALL | {"persona_sessions": 3}) as here:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
        accept = {"Accept": "application/json, text/event-stream"}
        async with here.client("helper", headers=accept) as helper, contextlib.AsyncExitStack() as streams:
            idents = []
            for _ in range(5):  # a session that is not in use gives way to a new one of the same persona
                begun = await helper.post("/mcp", json=hello)
                assert begun.status_code == 200, begun.text
                idents.append(begun.headers["mcp-session-id"])
            for ident in idents[-3:]:
                held = await streams.enter_async_context(
                    helper.stream("GET", "/mcp", headers={"Mcp-Session-Id": ident})
                )
                assert held.status_code == 200
            assert (await helper.post("/mcp", json=hello)).status_code == 429
            await streams.enter_async_context(helper.stream("GET", "/api/v1/stream"))
            assert (await helper.get("/api/v1/stream")).status_code == 429, (
                "streams of both kinds count together"
            )
            async with here.client("other", headers=accept) as other:
                assert (await other.post("/mcp", json=hello)).status_code == 200
            await human_works(here)
