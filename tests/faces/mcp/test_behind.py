"""What servers behind the gate have besides tools, and what they ask, as the client of the gate sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.faces.mcp.server import McpServer
from upstream.world import raw

from .clients import Raw, envelope

ASKS = {"elicitation": {}}
ONE = "toolgate://servers/up/note://one"


@asynccontextmanager
async def _serving(place: Path, persona: str = "ada") -> AsyncIterator[tuple[toolgate.Gate, Raw]]:
    config: dict[str, Any] = {
        "version": 1,
        "default_persona": "ada",
        "personas": {"ada": {"phase": "contribute", "allow": ["up.*"]}, "bob": {"phase": "observe"}},
        "servers": {"up": raw(place, "library")},
    }
    async with toolgate.open(place, config, "memory") as gate:
        server = McpServer(gate)
        client = Raw(server, persona)
        try:
            yield gate, client
        finally:
            await client.connection.close()
            server.close()


async def _result(client: Raw, method: str, **params: Any) -> Any:
    answer = await client.say(method, params)
    assert "result" in answer, answer
    return answer["result"]


async def test_a_list_starts_no_server_and_shows_what_those_that_run_have(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (gate, client):
        await client.shake()
        before = await _result(client, "resources/list")
        assert not any(one["uri"].startswith("toolgate://servers/") for one in before["resources"])
        assert [one["state"] for one in gate.servers()] == ["unseen"]
        await gate.upstream.discover()
        assert [(one["state"], one["last_error"]) for one in gate.servers()] == [("ready", "")]
        listed = (await _result(client, "resources/list"))["resources"][-1]
        assert listed == {"uri": ONE, "name": "up.on⟨U+001B⟩e", "mimeType": "text/plain"}
        templates = (await _result(client, "resources/templates/list"))["resourceTemplates"]
        assert templates[-1]["uriTemplate"] == "toolgate://servers/up/{+uri}"
        prompts = (await _result(client, "prompts/list"))["prompts"]
        assert prompts[-1]["name"] == "up.greet"
        assert prompts[-1]["arguments"] == [{"name": "who", "required": True}]
        assert "up.resources_list" in [row.tool for row in await gate.events()]


async def test_a_resource_and_a_prompt_of_a_server_are_read_by_recorded_calls(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (gate, client):
        await client.shake()
        await gate.upstream.discover()
        (content,) = (await _result(client, "resources/read", uri=ONE))["contents"]
        assert content == {"uri": ONE, "text": "a ⟨U+0007⟩note"}
        got = await _result(client, "prompts/get", name="up.greet", arguments={"who": "Ada"})
        assert got["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ada."}}]
        tools = [row.tool for row in await gate.events() if row.kind == "committed"]
        assert {"up.resources_read", "up.prompts_get"} <= set(tools)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resources/read", {"uri": "toolgate://servers/up/note://none"}, -32002),
        ("resources/read", {"uri": "toolgate://servers/nobody/note://one"}, -32002),
        ("resources/read", {"uri": "toolgate://servers/up/"}, -32002),
        ("prompts/get", {"name": "up.none"}, -32602),
        ("prompts/get", {"name": "up."}, -32602),
        ("prompts/get", {"name": "code.read"}, -32602),
        ("prompts/get", {"name": "up.greet", "arguments": {"who": 5}}, -32602),
    ],
)
async def test_what_a_server_does_not_have_is_not_found(
    tmp_path: Path, method: str, params: dict[str, Any], code: int
) -> None:
    async with _serving(tmp_path) as (gate, client):
        await client.shake()
        await gate.upstream.discover()
        assert (await client.say(method, params))["error"]["code"] == code


async def test_half_a_picture_is_not_passed_on_as_one(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (gate, client):
        await client.shake()
        await gate.upstream.discover()
        answer = await client.say("resources/read", {"uri": "toolgate://servers/up/note://many"})
        assert "too_large" in answer["error"]["message"]


async def test_where_policy_asks_nothing_is_listed_and_reading_waits_for_a_human(tmp_path: Path) -> None:
    async with _serving(tmp_path, "bob") as (gate, client):
        await client.shake()
        await gate.upstream.discover()
        listed = (await _result(client, "resources/list"))["resources"]
        assert not any(one["uri"].startswith("toolgate://servers/") for one in listed)
        assert not any("." in one["name"] for one in (await _result(client, "prompts/list"))["prompts"])
        assert await gate.approvals() == []
        refused = (await client.say("resources/read", {"uri": ONE}))["error"]
        assert "pending" in refused["message"]
        (question,) = await gate.approvals()
        await gate.answer(question.id, "approve")
        assert (await _result(client, "resources/read", uri=ONE))["contents"]


async def test_a_servers_question_is_shown_as_its_own_and_answered_to_it_alone(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (gate, client):
        await client.shake(ASKS)
        await gate.upstream.discover()
        calling = asyncio.create_task(client.call("up.ask", ident="c"))
        asked = await calling  # the first message that comes back is the server's question
        assert asked["method"] == "elicitation/create"
        label, _, words = asked["params"]["message"].partition("\n\n")
        assert label.startswith("The server up asks (this is not a question of toolgate")
        assert words == "  │ Your ⟨U+001B⟩[1mword?"
        assert asked["params"]["requestedSchema"]["properties"] == {"word": {"type": "string"}}
        assert await gate.approvals() == []
        reply = {"action": "accept", "content": {"word": "please"}}
        client.connection.receive({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
        result = (await client.next())["result"]
        assert json.loads(result["content"][0]["text"]) == reply


@pytest.mark.parametrize("modern", [True, False])
async def test_where_it_cannot_be_shown_a_servers_question_is_declined(tmp_path: Path, modern: bool) -> None:
    async with _serving(tmp_path) as (gate, client):
        await gate.upstream.discover()
        if modern:
            answer = await client.call("up.ask", _meta=envelope())
        else:
            await client.shake()
            answer = await client.call("up.ask")
        assert json.loads(answer["result"]["content"][0]["text"]) == {"action": "decline"}


async def test_a_forged_state_for_a_tool_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (_, client):
        answer = await client.call("elsewhere.tool", _meta=envelope(ASKS), requestState="forged")
        assert answer["result"]["content"][0]["text"].startswith("not_allowed: ")


async def test_names_of_tools_are_completed_for_the_prompt_that_explains_them(tmp_path: Path) -> None:
    async with _serving(tmp_path) as (_, client):
        await client.shake()
        ref = {"type": "ref/prompt", "name": "explain_refusal"}
        found = await _result(
            client, "completion/complete", ref=ref, argument={"name": "tool", "value": "code.se"}
        )
        assert found["completion"] == {"values": ["code.search"], "total": 1, "hasMore": False}
        for wrong in ({}, {"ref": ref}, {"ref": {"type": "x"}, "argument": {"name": "a", "value": ""}}):
            assert (await client.say("completion/complete", wrong))["error"]["code"] == -32602
