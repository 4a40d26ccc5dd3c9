"""The official SDK's client, over stdio and HTTP, in both eras."""

from __future__ import annotations

import asyncio

import jsonschema
import pytest
from mcp import MCPError

from toolgate.consent.desk import whoami
from toolgate.faces.cli.ledger_pages import gist
from toolgate.faces.console.call_timeline import said
from toolgate.faces.console.calls import calls
from toolgate.kits.words import body_of
from toolgate.storage.port import Filter

from .clients import APPROVE, REFUSE, User, client, soon
from .conftest import World

EVERYWHERE = pytest.mark.parametrize(
    ("transport", "era"), [(t, e) for t in ("stdio", "http") for e in ("handshake", "stateless")]
)


@EVERYWHERE
async def test_a_client_lists_and_calls_tools_and_gets_the_whole_result(
    world: World, transport: str, era: str
) -> None:
    async with client(world.server, transport, era) as mcp:
        tools = {tool.name: tool for tool in (await mcp.list_tools()).tools}
        look = tools["t.look"]
        assert look.description == "Look at something."
        assert look.input_schema["properties"]["x"]["type"] == "string"
        assert (look.annotations.read_only_hint, look.annotations.open_world_hint) == (True, False)
        assert tools["t.act"].annotations.read_only_hint is False
        assert "ledger.undo" not in tools
        result = await mcp.call_tool("t.look", {"x": "moon"})
        assert not result.is_error
        assert result.structured_content["data"] == {"saw": "moon"}
        assert set(result.structured_content) == {"ok", "tool", "data", "error", "meta"}
        jsonschema.validate(result.structured_content, look.output_schema)
        assert result.content[0].text == "saw: moon"
        read = await mcp.call_tool("code.read", {"path": "hello.py"})
        assert "print('hello')" in read.content[0].text
        assert read.structured_content["data"]["content"] == "print('hello')\n"


@EVERYWHERE
async def test_errors_come_as_results_with_code_message_and_fix(
    world: World, transport: str, era: str
) -> None:
    async with client(world.server, transport, era) as mcp:
        failed = await mcp.call_tool("t.fail", {"x": "fly"})
        assert failed.is_error
        assert failed.structured_content["error"]["code"] == "failed"
        assert failed.content[0].text.startswith("failed: ")
        unknown = await mcp.call_tool("t.lok", {})
        assert unknown.structured_content["error"]["code"] == "unknown_tool"
        wrong = await mcp.call_tool("t.look", {"y": 1})
        assert wrong.structured_content["error"]["code"] == "invalid_args"
        big = await mcp.call_tool("t.big", {})
        assert big.structured_content["data"]["number"] == 2**80


@EVERYWHERE
async def test_the_user_of_the_client_approves_and_exactly_that_call_runs_once(
    world: World, transport: str, era: str
) -> None:
    user = User([APPROVE])
    async with client(world.server, transport, era, elicitation_callback=user) as mcp:
        result = await mcp.call_tool("t.act", {"x": "ship"})
        assert not result.is_error
        assert world.ran == ["act ship"]
        (shown,) = user.shown
        for part in (
            "ada wants to call t.act",
            '"x": "ship"',
            "it is reviewed",
            "can be undone: NO",
            "exactly this call",
        ):
            assert part in shown
    approved = [row for row in await world.gate.events() if row.kind == "approved"]
    assert len(approved) == 1
    assert '"channel":"mcp"' in approved[0].body


async def test_a_client_that_is_named_as_its_channel_is_named_once_in_every_face(world: World) -> None:
    async with client(world.server, "stdio", "handshake", elicitation_callback=User([APPROVE])) as mcp:
        await mcp.call_tool("t.act", {"x": "ship"})
    (row,) = await world.gate.events(Filter(kinds=("approved",)))
    assert body_of(row)["by"].endswith(" in mcp")
    for told in (gist(row), calls([row])[0].detail, said(row.kind, body_of(row))):
        assert told == f"by {whoami()} in mcp"


@EVERYWHERE
async def test_the_user_of_the_client_refuses_and_the_agent_hears_why(
    world: World, transport: str, era: str
) -> None:
    user = User([REFUSE])
    async with client(world.server, transport, era, elicitation_callback=user) as mcp:
        result = await mcp.call_tool("t.act", {"x": "ship"})
        assert result.structured_content["error"]["code"] == "denied"
        assert "Access denied by creator." in result.content[0].text
        assert "not today" in result.content[0].text
        again = await mcp.call_tool("t.act", {"x": "ship"})
        assert again.structured_content["error"]["code"] == "denied"
        declined = User(["decline"])
    async with client(world.server, transport, era, elicitation_callback=declined) as mcp:
        result = await mcp.call_tool("t.act", {"x": "boat"})
        assert result.structured_content["error"]["code"] == "denied"
    assert world.ran == []


@pytest.mark.parametrize(("transport", "era"), [("stdio", "handshake"), ("http", "stateless")])
@pytest.mark.parametrize("answer", ["cancel", {"answer": "maybe"}, {"answer": True}, {}])
async def test_without_a_clear_answer_nothing_runs_and_the_question_stays_open(
    world: World, transport: str, era: str, answer: object
) -> None:
    async with client(world.server, transport, era, elicitation_callback=User([answer])) as mcp:
        result = await mcp.call_tool("t.act", {"x": "ship"})
        assert result.structured_content["error"]["code"] == "pending"
        assert len(await world.gate.approvals()) == 1
    assert world.ran == []


@EVERYWHERE
async def test_a_client_that_cannot_ask_is_told_where_to_approve_and_the_repeat_runs(
    world: World, transport: str, era: str
) -> None:
    async with client(world.server, transport, era) as mcp:
        result = await mcp.call_tool("t.act", {"x": "ship"})
        assert result.structured_content["error"]["code"] == "pending"
        question = result.structured_content["data"]["question"]
        assert f"toolgate approvals {question} approve" in result.content[0].text
        await world.gate.answer(question, "approve")
        repeated = await mcp.call_tool("t.act", {"x": "ship"})
        assert repeated.structured_content["data"] == {"did": "ship"}
    assert world.ran == ["act ship"]


@EVERYWHERE
async def test_a_rule_that_wants_the_console_is_not_answered_in_the_client(
    world: World, transport: str, era: str
) -> None:
    user = User([APPROVE])
    async with client(world.server, transport, era, elicitation_callback=user) as mcp:
        result = await mcp.call_tool("t.far", {"x": "ship"})
        assert result.structured_content["error"]["code"] == "pending"
    assert (user.shown, world.ran) == ([], [])


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_whoever_answers_first_wins_and_the_form_is_withdrawn(world: World, transport: str) -> None:
    user = User()
    async with client(world.server, transport, "handshake", elicitation_callback=user) as mcp:
        calling = asyncio.create_task(mcp.call_tool("t.act", {"x": "ship"}))
        await soon(user.asked.wait())
        (question,) = await world.gate.approvals()
        await world.gate.answer(question.id, "approve", channel="console")
        result = await soon(calling)
        assert result.structured_content["ok"]


@EVERYWHERE
async def test_progress_is_told_and_only_forwards(world: World, transport: str, era: str) -> None:
    told: list[tuple[float, str | None]] = []
    half = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))
        if done == 0.5:
            half.set()

    async with client(world.server, transport, era) as mcp:
        calling = asyncio.create_task(mcp.call_tool("t.slow", {}, progress_callback=progress))
        await soon(half.wait())
        world.go.set()
        assert (await soon(calling)).structured_content["data"] == "done"
    assert told == [(0.25, "a quarter"), (0.5, "half")]


@EVERYWHERE
async def test_resources_and_prompts_are_listed_read_and_governed(
    world: World, transport: str, era: str
) -> None:
    async with client(world.server, transport, era) as mcp:
        listed = {str(item.uri) for item in (await mcp.list_resources()).resources}
        assert listed == {"toolgate://policy", "toolgate://ledger"}
        templates = [item.uri_template for item in (await mcp.list_resource_templates()).resource_templates]
        assert "toolgate://files/{mount}/{+path}" in templates
        file = await mcp.read_resource("toolgate://files/project/hello.py")
        assert file.contents[0].text == "print('hello')\n"
        assert "t.look" in (await mcp.read_resource("toolgate://policy")).contents[0].text
        assert "fs.read" in (await mcp.read_resource("toolgate://ledger")).contents[0].text
        for uri in (
            "toolgate://files/project/..%2F..%2Fetc%2Fpasswd",
            "toolgate://files/project/.env",
            "toolgate://nothing",
        ):
            with pytest.raises(MCPError):
                await mcp.read_resource(uri)
        prompts = {prompt.name for prompt in (await mcp.list_prompts()).prompts}
        assert {"review_changes", "review_file"} <= prompts
        prompt = await mcp.get_prompt("review_file", {"path": "hello.py"})
        assert "hello.py" in prompt.messages[0].content.text
        with pytest.raises(MCPError):
            await mcp.get_prompt("review_file", {})
    kinds = [(row.kind, row.tool) for row in await world.gate.events()]
    assert ("committed", "fs.read") in kinds


async def test_what_another_server_answered_keeps_its_kind(world: World) -> None:
    async with client(world.server, "stdio", "handshake") as mcp:
        image = await mcp.call_tool("t.other", {})
        assert (image.content[0].type, image.content[0].data) == ("image", "aGk=")
        odd = await mcp.call_tool("t.other", {"kind": "script"})
        assert odd.content[0].type == "text"


@EVERYWHERE
async def test_a_persona_does_not_see_what_it_may_not_call(world: World, transport: str, era: str) -> None:
    async with client(world.server, transport, era, persona="bob") as mcp:
        names = {tool.name for tool in (await mcp.list_tools()).tools}
        assert "t.look" in names
        assert "t.secret" not in names
        result = await mcp.call_tool("t.secret", {})
        assert result.structured_content["error"]["code"] == "not_allowed"
