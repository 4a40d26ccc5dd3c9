"""What a server wants of a client of the stateless era: an unfinished result, and the same call goes on with the answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolgate.faces.mcp import request_state
from upstream.world import hostile

from .behind_world import ANSWER, ASKS, SAMPLES, Behind, behind, said
from .clients import APPROVE, Message, Raw, envelope

BOTH = ASKS | SAMPLES
WORD = {"action": "accept", "content": {"word": "please"}}


async def _unfinished(
    client: Raw, tool: str = "up.ask", args: Any = None, **more: Any
) -> tuple[Message, str]:
    answer = await client.call(tool, args, ident="first", _meta=envelope(BOTH), **more)
    result = answer["result"]
    assert result["resultType"] == "input_required", result
    (asked,) = result["inputRequests"].items()
    return asked, result["requestState"]


async def _again(client: Raw, state: str, given: Any, tool: str = "up.ask", args: Any = None) -> Message:
    return await client.call(
        tool, args, ident="again", _meta=envelope(BOTH), requestState=state, inputResponses=given
    )


async def test_a_servers_question_is_answered_by_the_repeated_call_which_is_the_same_call(
    tmp_path: Path,
) -> None:
    async with behind(tmp_path) as world:
        client = world.stateless()
        (key, asked), state = await _unfinished(client)
        assert asked["method"] == "elicitation/create"
        assert asked["params"]["mode"] == "form"
        assert asked["params"]["message"].startswith("The server up asks (this is not a question of toolgate")
        assert await world.gate.approvals() == []
        assert await world.rows("up.ask") == ["started"]
        assert json.loads(said(await _again(client, state, {key: WORD}))) == WORD
        assert await world.rows("up.ask") == ["started", "elicited", "committed"]


async def test_a_servers_wish_for_a_model_comes_after_the_question_about_it(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="ask") as world:
        client = world.stateless()
        (key, asked), state = await _unfinished(client, "up.sample")
        assert asked["params"]["message"].startswith("toolgate asks: ada wants to call up.sampling")
        yes = {"action": "accept", "content": APPROVE}
        (key, asked), state = await _result(await _again(client, state, {key: yes}, "up.sample"))
        assert asked["method"] == "sampling/createMessage"
        answer = await _again(client, state, {key: ANSWER}, "up.sample")
        assert json.loads(said(answer)) == [ANSWER]
        assert (await world.rows("up.sample")).count("started") == 1


async def _result(answer: Message) -> tuple[Any, str]:
    (asked,) = answer["result"]["inputRequests"].items()
    return asked, answer["result"]["requestState"]


@pytest.mark.parametrize("given", [None, {}, {"other": WORD}, {"server-1": "yes"}, []])
async def test_who_comes_back_without_an_answer_has_given_none(tmp_path: Path, given: Any) -> None:
    async with behind(tmp_path) as world:
        client = world.stateless()
        _, state = await _unfinished(client)
        assert json.loads(said(await _again(client, state, given))) == {"action": "cancel"}


async def test_a_state_is_good_for_one_persona_one_request_and_one_time(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        client, other = world.stateless(), world.stateless("bob")
        (key, _), state = await _unfinished(client)
        given = {key: WORD}
        for refused in (
            await _again(other, state, given),
            await _again(client, state, given, args={"message": "another"}),
            await _again(client, state, given, "up.sample"),
            await _again(client, request_state.MARK + "guessed", given),
        ):
            assert refused["result"]["structuredContent"]["error"]["code"] == "not_allowed"
        assert json.loads(said(await _again(client, state, given))) == WORD
        late = await _again(client, state, given)
        assert late["result"]["structuredContent"]["error"]["code"] == "not_allowed"
        assert (await world.rows("up.ask")).count("started") == 1
        refusals = [row for row in await world.gate.events() if row.kind in ("rejected", "denied")]
        assert len(refusals) == 5


async def test_who_does_not_come_back_has_declined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "WAIT_SECONDS", 0.05)
    async with behind(tmp_path) as world:
        client = world.stateless()
        (key, _), state = await _unfinished(client)
        await _settled(world, "up.ask")
        late = await _again(client, state, {key: WORD})
        assert late["result"]["structuredContent"]["error"]["code"] == "not_allowed"


async def test_no_more_than_so_many_calls_of_a_persona_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_state, "MOST_OF_PERSONA", 1)
    async with behind(tmp_path) as world:
        client = world.stateless()
        (key, _), state = await _unfinished(client)
        # its server is busy with that call; what counts is that nothing else is kept waiting
        assert not world.server.suspended.room("ada")
        assert world.server.suspended.room("bob")
        assert json.loads(said(await _again(client, state, {key: WORD}))) == WORD
        assert world.server.suspended.room("ada")


async def test_calls_that_ended_meanwhile_take_no_room_and_only_so_many_results_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_state, "MOST_OF_PERSONA", 1)
    monkeypatch.setattr(request_state, "MOST_SUSPENDED", 2)
    async with behind(tmp_path, spec=hostile(tmp_path, timeout_s=0.3)) as world:
        client, states = world.stateless(), []
        asks = {"message": "word?", "requestedSchema": {"type": "object", "properties": {}}}
        args = {
            "steps": [{"send": {"method": "elicitation/create", "params": asks}, "asks": True, "wait": 1}]
        }
        for _ in range(3):
            states.append((await _unfinished(client, "up.do", args))[1])
            await _settled(world, "up.do")
        gone, *kept = [await _again(client, state, {}, "up.do", args) for state in states]
        assert gone["result"]["structuredContent"]["error"]["code"] == "not_allowed"
        assert {one["result"]["structuredContent"]["error"]["code"] for one in kept} == {"timeout"}


async def test_a_gate_that_closes_ends_what_waits(tmp_path: Path) -> None:
    async with behind(tmp_path) as world:
        await _unfinished(world.stateless())
        await world.server.suspended.close()
        assert (await world.rows("up.ask"))[-1] == "failed"


async def test_a_question_holds_no_secret_of_the_vault(tmp_path: Path) -> None:
    async with behind(tmp_path, None) as world:
        await world.gate.set_secret("TOKEN", "v4ult-value-1234")
        client = world.stateless()
        (_, asked), _ = await _unfinished(client, args={"message": "Is it v4ult-value-1234?"})
        assert asked["params"]["message"].endswith("Is it [secret:TOKEN]?")


async def test_a_client_without_a_model_is_told_what_it_lacks(tmp_path: Path) -> None:
    async with behind(tmp_path, sampling="allow") as world:
        client = world.stateless()
        answer = await client.call("up.sample", {"strict": True}, _meta=envelope(ASKS))
        assert answer["error"]["code"] == -32021
        assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def _settled(world: Behind, tool: str) -> None:
    async with asyncio.timeout(10):
        while (await world.rows(tool))[-1] == "started":
            await asyncio.sleep(0.01)
