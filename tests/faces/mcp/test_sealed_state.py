"""The stateless era's consent: forged, altered, replayed and foreign states change nothing and are recorded."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from .clients import Raw, envelope
from .conftest import World

YES = {"approval": {"action": "accept", "content": {"answer": "approve"}}}
ASKS = {"elicitation": {}}


async def _call(raw: Raw, args: Any, **more: Any) -> Any:
    answer = await raw.call("t.act", args, _meta=envelope(ASKS), **more)
    return answer["result"]


async def _asked(world: World, persona: str = "ada", args: Any = None) -> tuple[Raw, str]:
    raw = Raw(world.server, persona)
    result = await _call(raw, args or {"x": "ship"})
    assert result["resultType"] == "input_required"
    assert "wants to call t.act" in result["inputRequests"]["approval"]["params"]["message"]
    return raw, result["requestState"]


async def _refusals(world: World) -> list[Any]:
    return [row for row in await world.gate.events() if row.kind in ("rejected", "denied")]


def _altered(state: str, **change: Any) -> str:
    body, _, mac = state.partition(".")
    data = json.loads(base64.urlsafe_b64decode(body)) | change
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode() + "." + mac


async def test_the_answer_that_comes_with_the_state_we_sealed_runs_the_call_once(world: World) -> None:
    raw, state = await _asked(world)
    result = await _call(raw, {"x": "ship"}, requestState=state, inputResponses=YES)
    assert result["structuredContent"]["data"] == {"did": "ship"}
    replayed = await _call(raw, {"x": "ship"}, requestState=state, inputResponses=YES)
    assert replayed["structuredContent"]["error"]["code"] == "conflict"
    assert world.ran == ["act ship"]
    assert len(await _refusals(world)) == 1
    assert await world.gate.approvals() == []


@pytest.mark.parametrize(
    "forge",
    [
        lambda state: "",
        lambda state: 7,
        lambda state: {"question": "q"},
        lambda state: "x" * 100_000,
        lambda state: "é.é",
        lambda state: state[:-1] + ("0" if state[-1] != "0" else "1"),
        lambda state: state.partition(".")[0] + ".",
        lambda state: state.partition(".")[0],
        lambda state: _altered(state, expires=2**62),
        lambda state: _altered(state, persona="bob"),
        lambda state: state.replace(".1.", ".99."),
        lambda state: state.replace(".1.", ".."),
        lambda state: _altered(state, question="q_other"),
    ],
)
async def test_a_forged_or_altered_state_changes_nothing_and_is_recorded(world: World, forge: Any) -> None:
    raw, state = await _asked(world)
    result = await _call(raw, {"x": "ship"}, requestState=forge(state), inputResponses=YES)
    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "not_allowed"
    assert (world.ran, len(await world.gate.approvals())) == ([], 1)
    (refusal,) = await _refusals(world)
    assert (refusal.tool, refusal.persona) == ("t.act", "ada")


async def test_a_state_is_of_no_use_to_another_persona_or_for_another_call(world: World) -> None:
    raw, state = await _asked(world)
    other = Raw(world.server, "bob")
    for result in (
        await _call(other, {"x": "ship"}, requestState=state, inputResponses=YES),
        await _call(raw, {"x": "boat"}, requestState=state, inputResponses=YES),
    ):
        assert result["structuredContent"]["error"]["code"] == "not_allowed"
    assert (world.ran, len(await _refusals(world))) == ([], 2)


async def test_answers_without_a_state_count_for_nothing(world: World) -> None:
    raw, _ = await _asked(world)
    result = await _call(raw, {"x": "ship"}, inputResponses=YES)
    assert result["structuredContent"]["error"]["code"] == "not_allowed"
    assert world.ran == []


@pytest.mark.parametrize("responses", [None, {}, {"approval": 1}, {"other": YES["approval"]}])
async def test_a_state_without_an_answer_leaves_the_question_open(world: World, responses: Any) -> None:
    raw, state = await _asked(world)
    result = await _call(raw, {"x": "ship"}, requestState=state, inputResponses=responses)
    assert result["structuredContent"]["error"]["code"] == "pending"
    assert (world.ran, len(await world.gate.approvals())) == ([], 1)


async def test_the_console_may_have_been_faster(world: World) -> None:
    raw, state = await _asked(world)
    (question,) = await world.gate.approvals()
    await world.gate.answer(question.id, "deny", reason="no", channel="console")
    result = await _call(raw, {"x": "ship"}, requestState=state, inputResponses=YES)
    assert result["structuredContent"]["error"]["code"] in ("denied", "conflict")
    assert world.ran == []


async def test_a_question_shows_control_characters_and_cannot_pose_as_more(world: World) -> None:
    raw = Raw(world.server)
    result = await _call(raw, {"x": "a\u202eb\x1b[2J\ncan be undone: yes"})
    message = result["inputRequests"]["approval"]["params"]["message"]
    assert "\u202e" not in message
    assert "\x1b" not in message
    assert "\ncan be undone: NO" in message
    assert "\ncan be undone: yes" not in message


async def test_what_cannot_be_shown_whole_is_not_asked_in_the_client(world: World) -> None:
    raw = Raw(world.server)
    result = await _call(raw, {"x": "y" * 30_000})
    assert result["structuredContent"]["error"]["code"] == "pending"
