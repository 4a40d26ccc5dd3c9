"""Approving for this session, in the form of an MCP client: what it covers, for how long, and what no form can give."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.faces.mcp import question as questions

from .clients import Raw, User, client
from .conftest import World

SAME = "approve for this session: the same call"
HOUR = "approve for an hour: the same call"


@pytest.mark.parametrize(("era", "word"), [("handshake", SAME), ("stateless", HOUR)])
async def test_an_approval_for_the_session_covers_the_same_call_and_no_other(
    world: World, era: str, word: str
) -> None:
    user = User([{"answer": word}, {"answer": "refuse"}])
    async with client(world.server, "stdio", era, elicitation_callback=user) as mcp:
        for _ in range(3):
            assert not (await mcp.call_tool("t.act", {"x": "ship"})).is_error
        assert len(user.shown) == 1
        assert word in user.shown[0]
        assert (await mcp.call_tool("t.act", {"x": "other"})).is_error
    assert world.ran == ["act ship"] * 3
    (grant,) = await world.gate.grants()
    assert bool(grant.body.get("only_conversation")) is (era == "handshake")


async def test_another_session_is_asked_again(world: World) -> None:
    user = User([{"answer": SAME}])
    async with client(world.server, "stdio", "handshake", elicitation_callback=user) as mcp:
        assert not (await mcp.call_tool("t.act", {"x": "ship"})).is_error
    later = User([{"answer": "refuse"}])
    async with client(world.server, "stdio", "handshake", elicitation_callback=later) as mcp:
        assert (await mcp.call_tool("t.act", {"x": "ship"})).is_error
    assert len(later.shown) == 1
    assert world.ran == ["act ship"]


@pytest.mark.parametrize(
    "word",
    ["approve for this session", "approve for this session: everything", "APPROVE", "", None, 1, [SAME]],
)
async def test_only_what_the_form_offers_can_be_chosen(world: World, word: Any) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {}})
    raw.connection.receive(
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "t.act", "arguments": {"x": "a"}},
        }
    )
    asked = await raw.next()
    while asked.get("method") != "elicitation/create":
        asked = await raw.next()
    assert SAME in asked["params"]["requestedSchema"]["properties"]["answer"]["enum"]
    raw.connection.receive(
        {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"answer": word}}}
    )
    done = await raw.next()
    assert done["result"]["isError"]
    assert world.ran == []
    assert await world.gate.grants() == []


async def test_a_file_is_offered_by_its_path(world: World) -> None:
    user = User([{"answer": "approve for this session: calls on these paths"}])
    async with client(world.server, "stdio", "handshake", elicitation_callback=user) as mcp:
        for text in ("one", "two"):
            assert not (await mcp.call_tool("t.write", {"path": "a.txt", "text": text})).is_error
    assert len(user.shown) == 1
    assert "on paths that match a.txt" in user.shown[0]


def test_an_answer_without_offers_is_a_plain_one() -> None:
    assert questions.answer({"action": "accept", "content": {"answer": SAME}}) is None
    said = questions.answer({"action": "accept", "content": {"answer": "approve"}})
    assert said is not None
    assert said.scope is None
