"""The loop guard at the gate: told, asked, stopped; each with its reason on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.world import Witness, call, calls, world
from toolgate.facade import Gate
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter
from toolgate.testing import Approve, Refuse, Script


async def rules(gate: Gate, kind: str) -> list[str]:
    return [str(parsed(row).get("rule")) for row in await gate.events(Filter(kinds=(kind,)))]


async def test_220_equal_calls_are_stopped_at_the_third(tmp_path: Path) -> None:
    witness = Witness()
    script = [calls(call("t.look", x="same")) for _ in range(220)]
    async with world(script, tmp_path, witness=witness, agents={"model": "model", "rounds": 100}) as (
        gate,
        agents,
    ):
        run = await agents.drive(await agents.start("look"))
        assert witness.ran == ["look same"] * 2
        assert run.state == "waiting"
        question = await gate.question(run.waiting)
        assert question is not None
        assert question.rule == "loop:repeat"
        assert "2 times with the same result" in question.reason
        results = [step["body"] for step in await agents.store.steps(run.id) if step["kind"] == "result"]
        assert [bool(body["note"]) for body in results] == [False, True]
        assert [body["text"].count("(The gate: ") for body in results] == [0, 1]
        await gate.answer(run.waiting, "deny", reason="it goes round in circles")
        run = await agents.resume(run.id)
        assert run.state == "stopped"
        assert len(witness.ran) == 2
        told = await gate.events(Filter(kinds=("noted",)))
        assert "circles" in parsed(told[-1])["rationale"]


async def test_a_human_may_let_it_go_on_once_and_the_fourth_is_refused(tmp_path: Path) -> None:
    witness = Witness()
    script = [calls(call("t.look", x="same")) for _ in range(9)]
    human = Script(Approve("t.look"))
    more = {"model": "model", "rounds": 50}
    async with world(script, tmp_path, witness=witness, channels=[human], agents=more) as (gate, agents):
        human.gate = gate
        run = await agents.drive(await agents.start("look"), attended=True)
        assert run.state == "stopped"
        assert "circles" in run.reason
        assert len(witness.ran) == 3
        assert await rules(gate, "denied") == ["loop:stop"]


@pytest.mark.parametrize("length", [2, 3, 4, 5])
async def test_a_cycle_of_several_calls_is_stopped_at_its_third_round(tmp_path: Path, length: int) -> None:
    witness = Witness()
    turn = [calls(call("t.look", x=x)) for x in "abcde"[:length]]
    async with world(turn * 10, tmp_path, witness=witness, agents={"model": "model", "rounds": 90}) as (
        gate,
        agents,
    ):
        run = await agents.drive(await agents.start("look"))
        assert run.state == "waiting"
        assert len(witness.ran) == 2 * length
        question = await gate.question(run.waiting)
        assert question is not None
        assert f"{length} calls in turn" in question.reason


async def test_what_changes_is_no_circle_and_neither_is_another_run(tmp_path: Path) -> None:
    witness = Witness()
    script = [calls(call("t.next", x="same"))] * 9 + ["done"]
    async with world(script, tmp_path, witness=witness, agents={"model": "model", "rounds": 20}) as (
        gate,
        agents,
    ):
        run = await agents.drive(await agents.start("poll"))
        assert run.state == "done"
    witness = Witness()
    script = [calls(call("t.look", x="same")), "done"]
    async with world(script, tmp_path, witness=witness) as (gate, agents):
        for _ in range(5):
            run = await agents.drive(await agents.start("look", conversation="v_one"))
            assert run.state == "done"
        for _ in range(5):  # and who names no run is not looked at
            assert (await gate.call("t.look", {"x": "same"}, conversation="v_one")).note == ""


async def test_helpers_count_with_the_run_that_asked_for_them(tmp_path: Path) -> None:
    witness = Witness()
    look = calls(call("t.look", x="same"))
    ask = calls(call("ai.ask", question="look once more", persona="scout"))
    script = {"ada": [look, ask, "done"], "scout": [look, look, "nothing new"]}
    async with world(script, tmp_path, witness=witness) as (gate, agents):
        run = await agents.drive(await agents.start("look"))
        assert run.state == "waiting"
        question = await gate.question(run.waiting)
        assert question is not None
        assert question.persona == "scout"
        assert len(witness.ran) == 2


async def test_a_refused_call_that_is_repeated_stops_the_run_too(tmp_path: Path) -> None:
    script = [calls(call("fs.delete", path="x"))] * 50
    (tmp_path / "x").write_text("stays")
    async with world(script, tmp_path, agents={"model": "model", "rounds": 60}) as (gate, agents):
        run = await agents.drive(await agents.start("delete it"))
        assert run.state == "stopped"
        assert len(await rules(gate, "denied")) == 3
        assert (await rules(gate, "denied"))[-1] == "loop:stop"
    assert (tmp_path / "x").read_text() == "stays"


async def test_a_malformed_call_that_is_repeated_stops_the_run_though_it_never_was_a_call(
    tmp_path: Path,
) -> None:
    for wrong in (call("no.such", x="1"), call("t.look", y="1"), call("fs.read", path="../x")):
        script = [calls(wrong, call("t.next"))] * 50
        async with world(script, tmp_path, agents={"model": "model", "rounds": 60}) as (_, agents):
            run = await agents.drive(await agents.start("look"))
            assert run.state == "stopped", wrong
            assert "circles" in run.reason
            results = [one for one in await agents.store.steps(run.id) if one["kind"] == "result"]
            assert len([one for one in results if one["body"]["index"] == 0]) == 3


async def test_equal_calls_in_one_reply_are_counted_one_by_one(tmp_path: Path) -> None:
    witness = Witness()
    script: list[Any] = [calls(*[call("t.look", x="same")] * 100)]
    human = Script(Refuse("t.look"))
    async with world(script, tmp_path, witness=witness, channels=[human]) as (gate, agents):
        human.gate = gate
        run = await agents.drive(await agents.start("look"), attended=True)
        assert run.state == "stopped"
        assert len(witness.ran) == 2
