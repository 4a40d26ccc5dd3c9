"""Subscriptions to resources of servers behind the gate: a reading, asked of the server once, told to subscribers alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from toolgate.faces.mcp import subscriptions
from toolgate.features.servers.subscriptions import TELL_SECONDS
from upstream.world import said as text_of
from upstream.world import witnessed

from .behind_world import ONE, Behind, behind
from .clients import Message, Raw, envelope, soon

UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": ONE}}


async def _subscribe(client: Raw, uri: str = ONE) -> Message:
    return await client.say("resources/subscribe", {"uri": uri}, f"subscribe {uri}")


async def _touch(world: Behind, *uris: str) -> None:
    assert text_of(await world.gate.call("up.touch", {"uris": list(uris)})) == "touched"
    await asyncio.sleep(0.15)  # changes are told together, and what is not told should have had its time


async def test_only_subscribers_are_told_and_under_the_address_they_know(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        first, second, other = await world.client(), await world.client(persona="bob"), await world.client()
        for client in (first, second):
            assert (await _subscribe(client))["result"] == {}
        assert (await _subscribe(first))["result"] == {}  # again is no more than once
        await _touch(world, "note://one", "note://one", "note://other", "toolgate://policy")
        for client in (first, second):
            assert await client.next() == UPDATED
        assert all(client.sent.empty() for client in (first, second, other))
        subscribed = [line for line in witnessed(tmp_path) if "subscribe" in line]
        assert subscribed == ["subscribe note://one"]


async def test_the_last_one_who_leaves_ends_it_at_the_server(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        first, second = await world.client(), await world.client()
        for client in (first, second):
            await _subscribe(client)
        assert (await first.say("resources/unsubscribe", {"uri": ONE}))["result"] == {}
        assert (await first.say("resources/unsubscribe", {"uri": ONE}))["result"] == {}
        await _touch(world, "note://one")
        assert first.sent.empty()
        assert await second.next() == UPDATED
        assert "unsubscribe note://one" not in witnessed(tmp_path)
        await second.connection.close()  # as a session that ends
        assert "unsubscribe note://one" in witnessed(tmp_path)


@pytest.mark.parametrize("uri", ["toolgate://servers/up/note://none", "toolgate://servers/none/x", "file:///etc/passwd"])  # fmt: skip
async def test_what_may_not_be_read_is_as_if_it_were_not_there(tmp_path: Path, uri: str) -> None:
    async with behind(tmp_path) as world:
        ada, carl = await world.client(), await world.client(persona="carl")
        unknown = (await _subscribe(ada, uri))["error"]
        denied = (await _subscribe(carl))["error"]
        assert unknown["code"] == denied["code"] == -32002
        assert denied["message"] == unknown["message"].replace(uri, ONE)
        assert (await world.rows("up.resources_read"))[-1] == "denied"
        assert not any("subscribe" in line for line in witnessed(tmp_path))


async def test_where_policy_asks_a_human_is_asked_first(tmp_path: Path) -> None:
    ask = {"name": "look", "tools": ["up.resources_read"], "decision": "ask", "reason": "who reads"}
    async with behind(tmp_path, rules=(ask,)) as world:
        client = await world.client()
        assert "pending" in (await _subscribe(client))["error"]["message"]
        (question,) = await world.gate.approvals()
        await world.gate.answer(question.id, "approve")
        assert (await _subscribe(client))["result"] == {}


async def test_toolgates_own_resources_do_not_say_when_they_change(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        for uri in ("toolgate://policy", "toolgate://ledger", "toolgate://files/project/a.txt"):
            assert "do not say when they change" in (await _subscribe(client, uri))["error"]["message"]
        assert (await client.say("resources/subscribe", {"uri": 5}))["error"]["code"] == -32602


async def test_a_session_and_a_persona_have_so_many_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_OF_SESSION", 1)
    monkeypatch.setattr(subscriptions, "MOST_OF_PERSONA", 2)
    async with behind(tmp_path) as world:
        first, second, third = [await world.client() for _ in range(3)]
        assert (await _subscribe(first))["result"] == {}
        assert "1 subscriptions" in (await _subscribe(first, ONE + "x"))["error"]["message"]
        assert (await _subscribe(second))["result"] == {}
        assert "2 subscriptions" in (await _subscribe(third))["error"]["message"]
        assert (await _subscribe(await world.client(persona="bob")))["result"] == {}
        await first.connection.close()
        assert (await _subscribe(third))["result"] == {}


async def test_a_server_that_was_started_anew_is_asked_again(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        await _subscribe(client)
        os.kill(int(text_of(await world.gate.call("up.pid"))), signal.SIGKILL)
        await world.gate.call("up.pid")
        assert (await world.gate.call("up.pid")).ok
        assert await client.next() == UPDATED  # it may have changed while nobody listened
        await _touch(world, "note://one")
        assert await client.next() == UPDATED
        assert [line for line in witnessed(tmp_path) if "subscribe" in line] == ["subscribe note://one"] * 2


async def test_a_server_that_says_all_the_time_that_it_changed_is_told_on_a_few_times(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        await _subscribe(client)
        begun = time.monotonic()
        await _touch(world, *["note://one"] * 2000)
        assert 1 <= client.sent.qsize() <= (time.monotonic() - begun) / TELL_SECONDS + 1


async def test_who_may_no_longer_read_is_no_longer_told(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        await _subscribe(client)
        world.gate.services.registry.remove("up.resources_read")  # as when its server's approval is withdrawn
        await _touch(world, "note://one")
        assert client.sent.empty()


async def test_in_the_stateless_era_a_stream_says_what_it_will_tell_and_then_tells_it(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client, carl = world.stateless(), world.stateless("carl")
        uris = [ONE, "toolgate://servers/up/note://none", "toolgate://policy", 5, ONE]
        wanted: Any = {"notifications": {"resourceSubscriptions": uris}, "_meta": envelope()}
        acknowledged = await client.say("subscriptions/listen", wanted, "stream")
        meta = {"io.modelcontextprotocol/subscriptionId": "stream"}
        assert acknowledged["params"] == {"notifications": {"resourceSubscriptions": [ONE]}, "_meta": meta}
        refused = await carl.say("subscriptions/listen", wanted, "stream")
        assert refused["params"]["notifications"] == {}
        await _touch(world, "note://one")
        assert (await client.next())["params"] == {"uri": ONE, "_meta": meta}
        assert carl.sent.empty()
        client.connection.running["stream"].cancel()
        await soon(client.connection.close())  # cancels it once more, while it is ending
        async with asyncio.timeout(10):
            while witnessed(tmp_path)[-1] != "unsubscribe note://one":
                await asyncio.sleep(0.01)
        gone = await world.stateless().say("resources/subscribe", {"uri": ONE, "_meta": envelope()})
        assert gone["error"]["code"] == -32601


async def test_a_subscription_that_is_ended_before_it_began_does_not_begin(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        for ident, method in ((7, "resources/subscribe"), (8, "resources/unsubscribe")):
            message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": {"uri": ONE}}
            client.connection.receive(message)
        assert {(await client.next())["id"], (await client.next())["id"]} == {7, 8}
        assert client.connection.subscriptions == {}
        assert witnessed(tmp_path)[-1] == "unsubscribe note://one"


async def test_who_is_paused_is_told_nothing(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        ada, bob = await world.client(), await world.client(persona="bob")
        for client in (ada, bob):
            await _subscribe(client)
        await world.gate.pause("bob")
        await _touch(world, "note://one")
        assert await ada.next() == UPDATED
        assert bob.sent.empty()
        await world.gate.resume("bob")
        await _touch(world, "note://one")
        assert await bob.next() == UPDATED
