"""Calls of a server's tools: through the gate like any other, at most once, and whatever the server does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.caller import Caller, Elicitation, Reply
from toolgate.features.servers import server as one_server
from toolgate.features.servers import streams

from .world import a_tool, code, config, define, raw, said, status, witnessed


async def test_tools_enter_under_the_servers_name_with_their_schema_unchanged(place: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "x-odd": [1]}}, "$comment": "kept"}
    define(place, a_tool("get-it", inputSchema=schema, annotations={"readOnlyHint": True}), a_tool("do"))
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        await gate.upstream.discover()
        specs = {spec.name: spec for spec in gate.tools()}
        assert specs["up.get-it"].input_schema == schema
        assert specs["up.get-it"].effects == {"reads": ["outside"], "writes": []}
        assert specs["up.do"].effects == {"reads": ["outside"], "writes": ["outside"]}
        assert gate.services.registry.resolve("mcp__up__get-it").name == "up.get-it"
        bob = {spec.name: spec.decision for spec in gate.tools("bob") if spec.name.startswith("up.")}
        assert bob == {"up.get-it": "ask"}
        refused = await gate.call("up.do", persona="bob")
        assert code(refused) == "not_allowed"


async def test_nothing_starts_before_it_is_needed_and_one_process_serves_all_calls(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        assert status(gate)["state"] == "unseen"
        pids = [said(await gate.call("up.pid")) for _ in range(3)]
        both = await asyncio.gather(*(gate.call("up.write", {"text": str(n)}) for n in range(5)))
        assert [result.ok for result in both] == [True] * 5
        assert len(set(pids)) == 1
        assert status(gate)["state"] == "ready"
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        assert "up.pid" in [spec.name for spec in gate.tools()]  # remembered; nothing was started for it
        assert status(gate)["state"] == "idle"


async def test_arguments_are_checked_before_anything_is_sent(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        for wrong in ({}, {"text": 5}):
            refused = await gate.call("up.write", wrong)
            assert code(refused) == "invalid_args"
            assert "text" in refused.error.message
        assert witnessed(place) == []


async def test_a_call_that_is_lost_on_the_way_is_unknown_and_never_sent_again(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        lost = await gate.call("up.crash", key="once")
        assert code(lost) == "unknown_outcome"
        assert "exit code 3" in lost.error.message
        assert code(await gate.call("up.crash", key="once")) == "unknown_outcome"
        assert witnessed(place) == ["crash"]
        assert said(await gate.call("up.write", {"text": "after"})) == "written"
        read = await gate.call("up.look_and_crash")
        assert code(read) == "unavailable"
        events = [row.kind for row in await gate.events() if row.tool == "up.crash"]
        assert events.count("unknown") == 1


async def test_a_killed_server_is_started_again(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        first = said(await gate.call("up.pid"))
        os.kill(int(first), signal.SIGKILL)
        second = await gate.call("up.pid")
        if not second.ok:  # it was asked before anybody knew of its death
            assert code(second) == "unavailable"
            second = await gate.call("up.pid")
        assert said(second) != first
        assert status(gate)["restarts"] == 1


async def test_a_server_that_hangs_is_left_after_its_time_and_not_taken_for_alive(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_server, "PING_SECONDS", 0.2)
    spec = raw(place, timeout_s=0.3)
    async with toolgate.open(place, config({"up": spec}), "memory") as gate:
        first = said(await gate.call("up.pid"))
        assert code(await gate.call("up.hang")) == "unknown_outcome"
        assert status(gate)["state"] == "suspect"
        assert said(await gate.call("up.pid")) != first
        assert code(await gate.call("up.look_and_hang")) == "timeout"
        assert witnessed(place) == ["hang", "look_and_hang"]


async def test_a_call_that_is_cancelled_before_it_is_sent_has_no_effect(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        await gate.upstream.discover()
        await gate.upstream.close()
        server = gate.upstream._server("up")
        async with server._lock:  # as if it were being started
            task = asyncio.create_task(gate.call("up.write", {"text": "never"}))
            while not any(row.kind == "started" for row in await gate.events()):
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait((task,), timeout=30)
        assert (await gate.events())[0].kind == "failed"
        assert witnessed(place) == []


@pytest.mark.parametrize("tool", ["flood", "endless"])
async def test_a_server_that_floods_is_cut_off(
    place: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "FLOOD_SECONDS", 60.0)  # a busy machine reads slowly
    servers = {"up": raw(place), "other": raw(place)}
    async with toolgate.open(place, config(servers), "memory") as gate:
        result = await asyncio.wait_for(gate.call(f"up.{tool}"), 60)
        assert code(result) == "unavailable"
        assert "messages in" in result.error.message or "more than" in result.error.message
        assert said(await gate.call("other.pid"))


async def test_what_the_server_says_of_a_failure_is_shown_as_its_words(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        failed = await gate.call("up.fail")
        assert code(failed) == "failed"
        assert failed.error.message == "up says that it failed: no such ⟨U+001B⟩[31mthing"
        refused = await gate.call("up.refuse")
        assert code(refused) == "failed"
        assert "⟨U+001B⟩" in refused.error.message
        assert code(await gate.call("up.nonsense")) == "unknown_outcome"


async def test_a_program_gets_the_environment_it_was_given_and_no_other(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-servers")
    monkeypatch.setenv("REAL_TOKEN", "s3cr3t-value-1234")
    spec = raw(place, env={"API_TOKEN": "${env:REAL_TOKEN}"})
    async with toolgate.open(place, config({"up": spec})) as gate:
        names = set(json.loads(said(await gate.call("up.env"))))
        usual = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LC_CTYPE"}
        assert names - usual == {"API_TOKEN", "BEHAVE", "DEFINE", "WITNESS"}
        assert said(await gate.call("up.secret")) == "it is [secret]"
    for file in (*place.rglob("*"), *Path(os.environ["TOOLGATE_STATE_DIR"]).rglob("*")):
        assert not file.is_file() or b"s3cr3t-value-1234" not in file.read_bytes(), file


async def test_a_program_gets_a_secret_of_the_vault_and_cannot_tell_it(place: Path) -> None:
    spec = raw(place, env={"API_TOKEN": "${secret:TOKEN}"})
    async with toolgate.open(place, config({"up": spec})) as gate:
        missing = await gate.call("up.secret")
        assert "no secret TOKEN in the vault" in missing.error.message
    async with toolgate.open(place, config({"up": spec})) as gate:
        await gate.set_secret("TOKEN", "v4ult-value-1234")
        assert said(await gate.call("up.secret")) == "it is [secret:TOKEN]"
    for file in (*place.rglob("*"), *Path(os.environ["TOOLGATE_STATE_DIR"]).rglob("*")):
        assert not file.is_file() or b"v4ult-value-1234" not in file.read_bytes(), file


async def test_secret_arguments_of_imported_tools_do_not_reach_the_ledger(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        await gate.call("up.write", {"text": "x", "password": "hunter2-hunter2"})
        assert not any("hunter2" in row.body for row in await gate.events())


async def test_a_dead_server_says_why_and_when_and_harms_nobody_else(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REAL_TOKEN", "s3cr3t-value-1234")
    dead = raw(place, "die", env={"API_TOKEN": "${env:REAL_TOKEN}"})
    servers = {"dead": dead, "up": raw(place), "missing": raw(place, command="no-such-program")}
    async with toolgate.open(place, config(servers), "memory") as gate:
        await gate.upstream.discover()
        assert said(await gate.call("up.pid"))
        for _ in range(2):
            gone = await gate.call("dead.write", {"text": "x"})
            assert code(gone) == "unavailable"
        assert "cannot start: [secret] ⟨U+001B⟩[31mtoken" in gone.error.message
        assert "tried again in" in gone.error.fix
        assert gone.data["retry_after_s"] > 0
        assert status(gate, "dead")["state"] == "waiting"
        missing = await gate.call("missing.write")
        assert "'no-such-program' is not found" in missing.error.message
        assert "s3cr3t-value-1234" not in caplog.text


@pytest.mark.parametrize("behave", ["hang", "hang_list"])
async def test_a_server_that_hangs_at_its_start_is_given_up_in_time(place: Path, behave: str) -> None:
    servers = {"slow": raw(place, behave, start_timeout_s=0.5), "up": raw(place, "banner")}
    async with toolgate.open(place, config(servers), "memory") as gate:
        slow = asyncio.create_task(gate.call("slow.write", {"text": "x"}))
        assert said(await gate.call("up.pid"))
        result = await asyncio.wait_for(slow, 30)
        assert code(result) == "unavailable"
        assert "0.5 s" in result.error.message


async def test_a_servers_own_question_is_labelled_and_declined_where_nobody_shows_it(place: Path) -> None:
    asked: list[Elicitation] = []

    async def answer(question: Elicitation) -> Reply:
        asked.append(question)
        return Reply("accept", {"word": "please"})

    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        assert json.loads(said(await gate.call("up.ask"))) == {"action": "decline"}
        reply: Any = json.loads(said(await gate.call("up.ask", caller=Caller(answer))))
        assert reply == {"action": "accept", "content": {"word": "please"}}
        assert (asked[0].source, asked[0].message) == ("up", "Your ⟨U+001B⟩[1mword?")
        assert "not a question of toolgate" in asked[0].label
        assert await gate.approvals() == []
        assert "not supported" in said(await gate.call("up.sample"))
    silent = raw(place) | {"elicitation": "deny"}
    async with toolgate.open(place, config({"up": silent}), "memory") as gate:
        unasked = await gate.call("up.ask", caller=Caller(answer))
        assert json.loads(said(unasked)) is None  # an error, not an answer
        assert len(asked) == 1


async def test_the_question_to_the_human_shows_server_tool_and_arguments(place: Path) -> None:
    define(place, a_tool("send", "Send \x1b[2Jit\u202e.", annotations={"destructiveHint": True}))
    async with toolgate.open(place, config({"up": raw(place)}), "memory") as gate:
        await gate.upstream.discover()
        pending = await gate.call("up.send", {"to": "them"}, persona="eve", wait=False)
        assert code(pending) == "pending"
        (question,) = await gate.approvals()
        assert question.args == {"to": "them"}
        assert "MCP server up (stdio:" in question.preview
        assert "its tool: send" in question.preview
        assert "may destroy" in question.preview
        assert "Send ⟨U+001B⟩[2Jit⟨U+202E⟩." in question.preview
        await gate.answer(question.id, "approve")
        assert code(await gate.call("up.send", {"to": "us"}, persona="eve", wait=False)) == "pending"
