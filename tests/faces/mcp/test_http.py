"""Streamable HTTP against requests that are not a friend's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from toolgate.faces.mcp import sessions

from .clients import Site, envelope, http_transport, site, soon
from .conftest import World

ACCEPT = {"accept": "application/json, text/event-stream", "authorization": "Bearer ada"}
NEW = ACCEPT | {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "t.look"}


@pytest.fixture
async def here(world: World) -> AsyncIterator[Site]:
    async with site(world.server, max_bytes=100_000) as found:
        yield found


@pytest.fixture
async def web(here: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=here.url, headers=ACCEPT, timeout=10) as opened:
        yield opened


def say(method: str, params: Any = None, ident: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}


INIT = say("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
LOOK = say("tools/call", {"name": "t.look", "arguments": {"x": "1"}, "_meta": envelope()})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer nobody"}, 401),
        ({"authorization": "Bearer human"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80@127.0.0.1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:1"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "text/html"}, 406),
        ({"content-length": "999999999"}, 413),
    ],
)
async def test_who_may_not_call_or_calls_wrongly_is_refused_and_nothing_runs(
    world: World, web: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    sent = NEW | {"content-type": "application/json"} | headers
    if "content-length" in headers:
        answer = await web.post(
            "", content=b" " * 200_000, headers=NEW | {"content-type": "application/json"}
        )
    else:
        answer = await web.post("", json=LOOK, headers=sent)
    assert answer.status_code == status
    assert world.ran == []


async def test_the_own_origin_may_call(world: World, web: httpx2.AsyncClient, here: Site) -> None:
    answer = await web.post("", json=LOOK, headers=NEW | {"origin": here.url.removesuffix("/mcp")})
    assert answer.json()["result"]["structuredContent"]["data"] == {"saw": "1"}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
async def test_other_methods_are_not_allowed(web: httpx2.AsyncClient, method: str) -> None:
    answer = await web.request(method, "")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-name": "t.act"}, -32020),
        ({"mcp-name": "=?base64?%%%?="}, -32020),
        ({"mcp-protocol-version": "2031-01-01"}, -32020),
    ],
)
async def test_headers_that_say_other_than_the_body_are_refused(
    world: World, web: httpx2.AsyncClient, change: dict[str, str], code: int
) -> None:
    answer = await web.post("", json=LOOK, headers=NEW | change)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert world.ran == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600),
    ],
)
async def test_a_broken_body_gets_its_error(
    web: httpx2.AsyncClient, body: bytes, status: int, code: int
) -> None:
    answer = await web.post("", content=body, headers=NEW | {"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_an_unknown_method_of_the_stateless_era_is_not_found(web: httpx2.AsyncClient) -> None:
    answer = await web.post(
        "", json=say("no/such", {"_meta": envelope()}), headers=NEW | {"mcp-method": "no/such"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
    notified = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await web.post("", json=notified, headers=NEW)).status_code == 202


async def test_a_session_belongs_to_its_persona_and_ends_when_told(
    world: World, web: httpx2.AsyncClient
) -> None:
    opened = await web.post("", json=INIT)
    mine = {"mcp-session-id": opened.headers["mcp-session-id"]}
    call = say("tools/call", {"name": "t.look", "arguments": {}})
    assert (await web.post("", json=call)).status_code == 400
    assert (await web.post("", json=call, headers={"mcp-session-id": "guess"})).status_code == 404
    assert (await web.post("", json=call, headers=mine | {"authorization": "Bearer bob"})).status_code == 404
    assert world.ran == []
    assert (await web.post("", json=call, headers=mine)).json()["result"]["structuredContent"]["ok"]
    assert (await web.delete("", headers=mine | {"authorization": "Bearer bob"})).status_code == 404
    assert (await web.delete("", headers=mine)).status_code == 204
    assert (await web.post("", json=call, headers=mine)).status_code == 404


async def test_a_failed_handshake_leaves_no_session(web: httpx2.AsyncClient, here: Site) -> None:
    answer = await web.post("", json=say("initialize", {"protocolVersion": 7}))
    assert answer.json()["error"]["code"] == -32602
    assert len(here.app.sessions) == 0


async def test_a_persona_at_its_limit_of_sessions_gives_up_the_one_it_used_longest_ago(
    web: httpx2.AsyncClient, here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.app.sessions.most_each = 2
    begun = [(await web.post("", json=INIT)).headers["mcp-session-id"] for _ in range(3)]
    ping = say("ping")
    assert [
        (await web.post("", json=ping, headers={"mcp-session-id": each})).status_code for each in begun
    ] == [404, 200, 200]
    monkeypatch.setattr(sessions, "IDLE", -1.0)
    assert (await web.post("", json=INIT)).status_code == 200
    assert len(here.app.sessions) == 1


async def test_one_persona_leaves_sessions_for_others(web: httpx2.AsyncClient, here: Site) -> None:
    here.app.sessions.most_each = 1
    bob = {"authorization": "Bearer bob"}
    first = (await web.post("", json=INIT, headers=bob)).headers["mcp-session-id"]
    async with web.stream("GET", "", headers=bob | {"mcp-session-id": first}) as stream:
        assert stream.status_code == 200
        assert (await web.post("", json=INIT, headers=bob)).status_code == 429, "it is in use"
        assert (await web.post("", json=INIT)).status_code == 200


async def test_a_stateless_client_that_hangs_up_cancels_its_call(
    world: World, web: httpx2.AsyncClient
) -> None:
    slow = say("tools/call", {"name": "t.slow", "arguments": {}, "_meta": envelope()})
    posting = asyncio.create_task(web.post("", json=slow, headers=NEW | {"mcp-name": "t.slow"}))
    await soon(world.started.wait())
    posting.cancel()
    async with asyncio.timeout(60):
        while world.ran != ["slow cancelled"]:
            await asyncio.sleep(0.01)


async def test_a_handshake_client_without_streams_is_not_asked_but_told_where(
    world: World, web: httpx2.AsyncClient
) -> None:
    init = say("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}})
    opened = await web.post("", json=init)
    headers = {"mcp-session-id": opened.headers["mcp-session-id"], "accept": "application/json"}
    answer = await web.post("", json=say("tools/call", {"name": "t.act", "arguments": {}}), headers=headers)
    assert answer.json()["result"]["structuredContent"]["error"]["code"] == "pending"
    assert world.ran == []


async def test_eight_clients_at_once_lose_nothing(world: World, here: Site) -> None:
    from mcp import Client

    from .clients import MODES, _ready

    async def one(number: int) -> None:
        async with http_transport(here.url) as streams:
            mode = MODES["handshake" if number % 2 else "stateless"]
            async with Client(_ready(streams), mode=mode) as mcp:
                for turn in range(10):
                    result = await mcp.call_tool("t.look", {"x": f"{number}-{turn}"})
                    assert result.structured_content["data"] == {"saw": f"{number}-{turn}"}

    await asyncio.gather(*(one(number) for number in range(8)))
    assert len(world.ran) == len(set(world.ran)) == 80
    assert (await world.gate.verify()).ok
