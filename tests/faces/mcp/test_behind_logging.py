"""Log messages of servers behind the gate: to the client that made the call, and to no other."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from toolgate.core.caller import LOG_LEVELS
from toolgate.features.servers import active_calls
from upstream.world import witnessed

from .behind_world import behind
from .clients import Message, Raw, envelope


def _line(level: str = "error", data: Any = "words", **more: Any) -> Message:
    return {"level": level, "data": data, **more}


async def _heard(client: Raw, *lines: Message, times: int = 1, **more: Any) -> tuple[list[Message], Message]:
    """What came during the call, and its answer."""
    answer = await client.call("up.log", {"lines": list(lines), "times": times}, ident="log", **more)
    found: list[Message] = []
    while "method" in answer:
        found.append(answer)
        answer = await client.next()
    assert all(one["method"] == "notifications/message" for one in found), found
    return [one["params"] for one in found], answer


async def test_a_client_hears_what_a_server_logs_from_the_level_it_asked_for(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        lines = [_line(level, level) for level in LOG_LEVELS]
        assert (await _heard(client, *lines))[0] == []  # it has not asked for any
        assert (await client.say("logging/setLevel", {"level": "error"}))["result"] == {}
        heard, answer = await _heard(client, *lines)
        assert [one["data"] for one in heard] == ["error", "critical", "alert", "emergency"]
        assert answer["result"]["content"][0]["text"] == "logged"
        await client.say("logging/setLevel", {"level": "debug"})
        assert len((await _heard(client, *lines))[0]) == 8
        assert witnessed(tmp_path) == [
            "level info",
            "level debug",
        ]  # the server is told the most that is wanted
        for wrong in ({}, {"level": "loud"}, {"level": ["error"]}):
            assert (await client.say("logging/setLevel", wrong))["error"]["code"] == -32602


async def test_in_the_stateless_era_each_request_says_what_it_wants_to_hear(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = world.stateless()
        level = {"io.modelcontextprotocol/logLevel": "warning"}
        lines = (_line("info"), _line("warning"))
        assert len((await _heard(client, *lines, _meta=envelope() | level))[0]) == 1
        assert (await _heard(client, *lines, _meta=envelope()))[0] == []
        missing = await client.say("logging/setLevel", {"level": "info", "_meta": envelope()})
        assert missing["error"]["code"] == -32601


async def test_what_a_server_logs_is_cleaned_redacted_and_under_its_own_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolgate.upstream")
    async with behind(tmp_path, None) as world:
        await world.gate.set_secret("TOKEN", "v4ult-value-1234")
        client = await world.client()
        await client.say("logging/setLevel", {"level": "info"})
        secret = "it is v4ult-value-1234"
        heard, _ = await _heard(
            client,
            _line(data="\x1b[2Jgone\u202e", logger="toolgate"),
            _line(data=secret, logger=secret),
            _line(data={"deep": [secret, "\x07"]}),
            _line(data="x" * 5000 + secret),
            _line(data=["y" * 100] * 100),
            _line(data="z" * 1_000_000),
        )
        assert heard[0] == {"level": "error", "logger": "up/toolgate", "data": "⟨U+001B⟩[2Jgone⟨U+202E⟩"}
        assert heard[1]["data"] == "it is [secret:TOKEN]"
        assert heard[1]["logger"] == "up/it is [secret:TOKEN]"
        assert heard[2] == {
            "level": "error",
            "logger": "up",
            "data": {"deep": ["it is [secret:TOKEN]", "⟨U+0007⟩"]},
        }
        assert all(len(one["data"]) < 5000 for one in heard[3:])
        assert "1,000,000 characters is left out" in heard[5]["data"]
        assert "up/toolgate logs (error): ⟨U+001B⟩[2Jgone" in caplog.text
        assert "v4ult-value-1234" not in caplog.text


async def test_a_server_that_floods_its_log_is_heard_a_little_and_its_call_goes_on(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        await client.say("logging/setLevel", {"level": "debug"})
        heard, answer = await _heard(client, _line(), times=3000)
        assert answer["result"]["content"][0]["text"] == "logged"
        assert active_calls.BURST <= len(heard) < 3 * active_calls.BURST
        assert [one["state"] for one in world.gate.servers()] == ["ready"]


async def test_after_a_flood_a_server_is_heard_again_and_what_was_left_out_is_counted() -> None:
    allowance = active_calls.Quota(burst=2, a_second=50)
    assert [allowance.take() for _ in range(4)] == [True, True, False, False]
    await asyncio.sleep(0.1)
    assert allowance.take()
    assert allowance.told() == 2
    assert allowance.told() == 0


async def test_where_two_clients_call_at_once_neither_hears_what_may_be_the_others(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        first, second = await world.client(), await world.client(persona="bob")
        for client in (first, second):
            await client.say("logging/setLevel", {"level": "debug"})
            await client.call("up.pid")
        lines = {"lines": [_line()] * 3, "pause": 0.5}
        first.connection.receive(_call("up.log", lines))
        second.connection.receive(_call("up.pid", {}))
        assert "result" in await first.next()
        assert "result" in await second.next()


async def test_calls_of_one_client_at_once_are_told_to_that_client(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client = await world.client()
        await client.say("logging/setLevel", {"level": "debug"})
        await client.call("up.pid")
        client.connection.receive(_call("up.log", {"lines": [_line()], "pause": 0.5}, 1))
        client.connection.receive(_call("up.pid", {}, 2))
        told = [await client.next() for _ in range(3)]
        assert [one["method"] for one in told if "method" in one] == ["notifications/message"]


def _call(name: str, args: Message, ident: int = 1) -> Message:
    return {
        "jsonrpc": "2.0",
        "id": ident,
        "method": "tools/call",
        "params": {"name": name, "arguments": args},
    }
