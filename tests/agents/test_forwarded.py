"""Calls through `tools.call` in a run: judged, ordered and counted as the calls that they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.world import Witness, call, calls, world

ALL = {"ada": {"phase": "collaborate", "allow": ["*"], "deny": ["fs.delete"]}}


def through(name: str, **args: Any) -> dict[str, Any]:
    return call("tools.call", tool=name, args=args)


async def test_a_refusal_stops_the_calls_behind_it_also_through_tools_call(tmp_path: Path) -> None:
    witness = Witness()
    script = [calls(through("fs.delete", path="a"), through("t.act", x="after")), "ok"]
    async with world(script, tmp_path, witness=witness, personas=ALL) as (_, agents):
        run = await agents.drive(await agents.start("do it"))
        results = [step["body"] for step in await agents.store.steps(run.id) if step["kind"] == "result"]
    assert witness.ran == []
    assert [body["tool"] for body in results] == ["fs.delete", "t.act"]
    assert results[0]["refused"]
    assert results[1]["code"] == "cancelled"


async def test_calls_through_tools_call_run_in_order_and_within_the_budget(tmp_path: Path) -> None:
    budget = {"model": "model", "rounds": 5, "budget": {"calls": 3}}
    for make in ("t.act", "t.look"):
        witness = Witness()
        script = [calls(*(through(make, x=str(number)) for number in range(9))), "end"]
        (root := tmp_path / make).mkdir()
        async with world(script, root, witness=witness, personas=ALL, agents=budget) as (_, agents):
            run = await agents.drive(await agents.start("do it"))
        assert run.state == "budget"
        assert witness.ran == [f"{make[2:]} {number}" for number in range(3)]


async def test_a_helper_asked_for_through_tools_call_is_driven_to_its_answer(tmp_path: Path) -> None:
    witness = Witness()
    script = {
        "ada": [calls(through("t.act", x="1"), through("ai.ask", question="look", persona="scout")), "end"],
        "scout": [calls(call("t.look", x="2")), "scout says so"],
    }
    personas = ALL | {"scout": {"parent": "ada"}}
    async with world(script, tmp_path, witness=witness, personas=personas) as (_, agents):
        run = await agents.drive(await agents.start("do it"))
        results = [step["body"] for step in await agents.store.steps(run.id) if step["kind"] == "result"]
    assert run.state == "done"
    assert witness.ran == ["act 1", "look 2"]
    assert "scout says so" in results[1]["text"]
