"""Plans, states and data: stored, linked to the calls of each step, read by their own and other personas, on both databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.world import call, calls, world
from toolgate.agents.compaction import compacted, tokens_of
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter

STEPS = [{"action": "look", "expected": "something"}, {"action": "act", "expected": "done"}]


@pytest.mark.parametrize("database", ["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_a_plan_is_kept_with_its_steps_and_their_calls(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("fresh_dsn") if database == "postgres" else None

    script = [
        calls(call("plan.make", goal="find it", steps=STEPS)),
        calls(call("t.look", x="a"), expect="find it"),
        {"text": "Found it.", "expect": "seen a"},
    ]
    async with world(script, tmp_path, database=place) as (gate, agents):
        run = await agents.drive(await agents.start("find it"))
        assert run.state == "done"
        (plan,) = await agents.plans.find("ada")
        assert (plan["goal"], plan["result"], plan["run"]) == ("find it", "Found it.", run.id)
        looked = next(row for row in await gate.events(Filter(kinds=("started",))) if row.tool == "t.look")
        assert plan["steps"][0]["calls"] == [looked.call]
        assert parsed(looked)["trail"]["plan"] == plan["id"]
        assert parsed(looked)["trail"]["step"] == "1"
        states = await agents.plans.states("ada")
        assert [state["body"]["kind"] for state in states] == ["ended", "begun"]


async def test_the_plan_is_told_with_every_request_and_survives_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 4000)
    seen: list[str] = []
    script = [calls(call("plan.make", goal="read it all", steps=STEPS))]
    script += [calls(call("code.read", path="long.txt", start_line=1, end_line=n + 1)) for n in range(3)]
    async with world([*script, "done"], tmp_path) as (_, agents):
        model = agents.models.given["model"]
        ask = model.ask

        async def noted(request: Any, say: Any) -> Any:
            seen.append(str(request.messages[0]["content"]))
            return await ask(request, say)

        model.ask = noted  # type: ignore[method-assign]
        run = await agents.start("read it")
        run.settings["begun"]["context_tokens"] = 3000
        run = await agents.drive(run)
        assert run.state == "done"
    assert all("Your plan" in text and "[ ] 1. look" in text for text in seen[1:])


def test_only_old_results_are_shortened_and_pairs_stay_pairs() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "q" * 5000}]
    for number in range(6):
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "arguments": "{}" * 300}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "x" * 8000})
    kept = compacted(messages, 8000)
    assert sum(map(tokens_of, kept)) <= 8000
    assert kept[0] == messages[0]
    assert kept[-4:] == messages[-4:]
    assert [one.get("tool_call_id") for one in kept] == [one.get("tool_call_id") for one in messages]
    assert [one.get("tool_calls") for one in kept] == [one.get("tool_calls") for one in messages]
    assert "left out" in kept[2]["content"]


def test_the_newest_results_are_cut_only_as_far_as_they_must_be_and_the_question_never() -> None:
    talk = [{"role": "user", "content": "before " * 400}, {"role": "assistant", "content": "so " * 400}]
    asked = {"role": "user", "content": "q" * 3000}
    last = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": "line\n" * 9000}],
    }
    called = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {"a": "b" * 900}}],
    }
    kept = compacted([*talk, asked, called, last, called, last], 8000, 2)
    assert 7000 < sum(map(tokens_of, kept)) <= 8000
    assert kept[2:4] == [asked, called]
    assert len(kept[4]["content"][0]["content"]) < 300 < len(kept[6]["content"][0]["content"])


async def test_a_request_with_its_prompt_fits_the_context_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 4000)
    script = [calls(call("code.read", path="long.txt"), text="I read."), "done"]
    sizes: list[int] = []
    async with world(script, tmp_path) as (_, agents):
        model = agents.models.given["model"]
        ask = model.ask

        async def noted(request: Any, say: Any) -> Any:
            sizes.append(sum(map(tokens_of, request.messages)))
            return await ask(request, say)

        model.ask = noted  # type: ignore[method-assign]
        run = await agents.start("read it")
        run.settings["begun"]["context_tokens"] = 6000
        assert (await agents.drive(run)).state == "done"
    assert 4000 < sizes[1] <= 6000


async def test_personas_read_their_own_and_each_others_but_not_another_users(tmp_path: Path) -> None:
    personas = {
        "ada": {"phase": "observe", "allow": ["t.*"]},
        "bob": {"phase": "observe"},
        "eve": {"phase": "observe", "user": "eve"},
    }
    script = [calls(call("t.look", x="a"), text="I look."), "Seen."]
    async with world(script, tmp_path, personas=personas) as (gate, agents):
        run = await agents.drive(await agents.start("look"))

        async def read(who: str, collection: str) -> Any:
            result = await gate.call("data.list", {"collection": collection}, persona=who)
            assert result.ok, result.error
            return result.data["entries"]

        for collection in ("plans", "states", "messages", "runs", "events", "usage_logs"):
            assert await read("ada", collection)
            assert await read("bob", collection)
            assert not [one for one in await read("eve", collection) if one["persona"] != "eve"]
        assert (await read("bob", "messages"))[0]["answer"] == "Seen."
        assert [one["tool"] for one in await read("bob", "usage_logs") if one["tool"] == "t.look"]
        plan = (await read("bob", "plans"))[0]
        assert plan["steps"][0]["expected"] == "I look."
        whole = await gate.call("data.read", {"collection": "runs", "id": run.id}, persona="bob")
        assert [step["kind"] for step in whole.data["steps"]] == ["reply", "result", "reply"]
        hidden = await gate.call("data.read", {"collection": "runs", "id": run.id}, persona="eve")
        assert hidden.error is not None
        assert hidden.error.code == "not_found"
        report = await gate.call("ai.report", {}, persona="ada")
        assert report.data["runs"] == {"done": 1}
        for collection in ("events", "executions", "rooms"):
            await read("ada", collection)


async def test_a_plan_is_changed_by_its_owner_only(tmp_path: Path) -> None:
    async with world([], tmp_path) as (gate, _):
        made = await gate.call("plan.make", {"goal": "g", "steps": STEPS}, persona="ada")
        args = {"plan": made.data["id"], "step": 1, "result": "so it is"}
        other = await gate.call("plan.update", args, persona="bob")
        assert other.error is not None
        assert other.error.code == "not_allowed"
        await gate.call("plan.update", args, persona="ada")
        last = await gate.call(
            "plan.update", {**args, "step": 2, "done": False, "error": "no"}, persona="ada"
        )
        assert (last.data["state"], last.data["steps"][1]["error"]) == ("failed", "no")
        again = await gate.call("plan.update", args, persona="ada")
        assert again.error is not None
