"""Durable questions: joined, few, answered once, in the channel the rule demands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import FixedClock, Witness, policy, soon
from toolgate.core.errors import Conflict, InvalidArgs, NotAllowed, NotFound
from toolgate.core.ports import Question

from .conftest import Open


async def ask(gate: toolgate.Gate, x: str = "1", **how: Any) -> str:
    result = await gate.call("t.act", {"x": x}, wait=False, **how)
    assert result.error is not None
    assert result.error.code == "pending", result
    return str(result.data["question"])


async def code(gate: toolgate.Gate, x: str = "1", **how: Any) -> str:
    result = await gate.call("t.act", {"x": x}, wait=False, **how)
    return str(result.error.code) if result.error else "ok"


async def test_the_same_call_joins_the_open_question(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        first = await ask(gate)
        assert await ask(gate) == first
        assert await ask(gate, "2") != first
        assert await ask(gate, persona="bob") != first, "another persona's call is another call"
        assert len(await gate.approvals()) == 3
    assert witness.ran == []


async def test_an_approval_is_for_exactly_one_call_once(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        await gate.answer(await ask(gate), "approve")
        assert await code(gate, "2") == "pending"
        assert await code(gate, persona="bob") == "pending"
        assert await code(gate) == "ok"
        assert await code(gate) == "pending"
    assert witness.arguments == ["1"]


async def test_two_who_wait_for_one_approval_do_not_both_run(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        twins = [asyncio.create_task(gate.call("t.act", {"x": "1"})) for _ in range(2)]
        while not (questions := await gate.approvals()):
            await asyncio.sleep(0.005)
        await gate.answer(questions[0].id, "approve")
        done, waiting = await asyncio.wait(twins, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().ok for task in done] == [True]
        while not await gate.approvals():
            await asyncio.sleep(0.005)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert witness.arguments == ["1"]


async def test_a_refusal_reaches_the_caller_with_its_reason(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        calling = asyncio.create_task(gate.call("t.act"))
        while not (questions := await gate.approvals()):
            await asyncio.sleep(0.005)
        await gate.answer(questions[0].id, "deny", reason="not today", by="eve")
        result = await soon(calling)
        assert result.error is not None
        assert result.error.code == "denied"
        assert result.error.message.startswith("Access denied by creator.")
        assert "not today" in result.error.message
    assert witness.ran == []


@pytest.mark.parametrize(
    ("first", "second"), [("approve", "deny"), ("deny", "approve"), ("approve", "approve")]
)
async def test_the_first_answer_wins(first: Any, second: Any, opened: Open) -> None:
    async with opened("ask") as gate:
        ident = await ask(gate)
        await gate.answer(ident, first)
        with pytest.raises((Conflict, NotFound)):
            await gate.answer(ident, second)
        assert await code(gate) == ("ok" if first == "approve" else "denied")


async def test_a_refusal_answers_repeats_until_its_question_would_have_run_out(
    opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened("ask", consent={"expires_s": 60}) as gate:
        await gate.answer(await ask(gate), "deny", reason="never on a Friday")
        for _ in range(3):
            again = await gate.call("t.act", {"x": "1"}, wait=False)
            assert again.error is not None
            assert again.error.code == "denied"
            assert "never on a Friday" in again.error.message
        assert await gate.approvals() == []  # nobody is asked again
        clock.advance(61)
        assert await code(gate) == "pending"
    assert witness.ran == []


@pytest.mark.parametrize("late", [0, 0.000001, 1000])
async def test_a_late_answer_is_refused(
    late: float, opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened("ask", consent={"expires_s": 60}) as gate:
        ident = await ask(gate)
        clock.advance(60 + late)
        with pytest.raises(NotFound):
            await gate.answer(ident, "approve")
        assert await code(gate) == "pending"
    assert witness.ran == []


async def test_an_approval_expires_too(opened: Open, clock: FixedClock, witness: Witness) -> None:
    async with opened("ask", consent={"expires_s": 60}) as gate:
        await gate.answer(await ask(gate), "approve")
        clock.advance(60)
        assert await code(gate) == "pending"
    assert witness.ran == []


async def test_open_questions_are_few_and_joining_is_free(opened: Open) -> None:
    async with opened("ask", consent={"max_open": 2}) as gate:
        first = await ask(gate, "1")
        await ask(gate, "2")
        assert await code(gate, "3") == "rate_limited"
        assert await code(gate, "1") == "pending"
        assert await code(gate, "3", persona="bob") == "pending", "the quota is each persona's own"
        await gate.answer(first, "deny")
        assert await code(gate, "3") == "pending"


async def test_a_rule_may_demand_a_channel(opened: Open, witness: Witness) -> None:
    rule = {"name": "r", "persona": "*", "tools": ["t.*"], "decision": "ask", "channels": ["terminal"]}
    async with opened(policy={"rules": [rule]}) as gate:
        ident = await ask(gate)
        with pytest.raises(NotAllowed, match="terminal"):
            await gate.answer(ident, "approve", channel="webhook")
        assert await code(gate) == "pending"
        await gate.answer(ident, "approve", channel="terminal")
        assert await code(gate) == "ok"
    assert witness.arguments == ["1"]


async def test_an_unattended_gate_refuses_at_once(opened: Open, witness: Witness) -> None:
    async with opened("ask", consent={"unattended": True}) as gate:
        result = await soon(gate.call("t.act"))
        assert result.error is not None
        assert result.error.code == "not_allowed"
        assert "unattended" in result.error.message
        assert await gate.approvals() == []
    assert witness.ran == []


async def test_channels_are_asked_and_told_when_somebody_else_was_faster(opened: Open) -> None:
    asked, told = asyncio.Event(), asyncio.Event()

    class Slow:
        name = "slow"

        async def ask(self, question: Question) -> None:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.set()

    async with opened("ask", channels=[Slow()]) as gate:
        calling = asyncio.create_task(gate.call("t.act"))
        await soon(asked.wait())
        await gate.answer((await gate.approvals())[0].id, "approve")
        assert (await soon(calling)).ok
        assert told.is_set()


SCOPES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {"x": "anything"}, True),
    ({"args": {"x": {"glob": "p*"}}}, {"x": "pq"}, True),
    ({"args": {"x": {"glob": "p*"}}}, {"x": "qp"}, False),
    ({"args": {"x": {"equals": "p"}}}, {"x": "pp"}, False),
    ({"args": {"missing": {"equals": "p"}}}, {"x": "p"}, False),
    ({"paths": ["a/**"]}, {"x": "p"}, False),
    ({"conversation": "c1"}, {"x": "p", "conversation": "c1"}, True),
    ({"conversation": "c1"}, {"x": "p", "conversation": "c2"}, False),
    ({"conversation": "c1"}, {"x": "p"}, False),
    ({}, {"x": "p", "persona": "bob"}, False),
]


@pytest.mark.parametrize(("scope", "how", "runs"), SCOPES)
async def test_a_grant_covers_what_it_says_and_no_more(
    scope: dict[str, Any], how: dict[str, Any], runs: bool, opened: Open
) -> None:
    async with opened("ask") as gate:
        await gate.answer(await ask(gate, "the question itself"), "approve", scope=scope)
        assert await code(gate, **how) == ("ok" if runs else "pending")


async def test_a_grants_uses_and_seconds_run_out_and_it_can_be_taken_back(
    opened: Open, clock: FixedClock
) -> None:
    async with opened("ask") as gate:
        await gate.answer(await ask(gate, "q"), "approve", scope={"uses": 2, "seconds": 60})
        assert [await code(gate, x) for x in "abc"] == ["ok", "ok", "pending"]
        await gate.answer(await ask(gate, "q2"), "approve", scope={"seconds": 60})
        assert await code(gate, "d") == "ok"
        clock.advance(60)
        assert await code(gate, "e") == "pending"
        await gate.answer(await ask(gate, "q3"), "approve", scope={"seconds": 60})
        (grant,) = await gate.grants()
        await gate.revoke(grant.id)
        assert await code(gate, "f") == "pending"
        with pytest.raises(NotFound):
            await gate.revoke(grant.id)


async def test_a_grant_turns_an_ask_into_an_allow_and_never_a_deny(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    import yaml

    file.write_text(yaml.safe_dump(policy("ask")))
    async with opened(config=file) as gate:
        await gate.answer(await ask(gate, "q"), "approve", scope={})
        assert await code(gate, "a") == "ok"
        file.write_text(yaml.safe_dump(policy("deny")))
        assert await code(gate, "b") == "not_allowed"
        file.write_text(yaml.safe_dump(policy("ask", rule="renamed")))
        assert await code(gate, "c") == "ok", "the grant is bound to rights and definition, not to the rule"
        changed = policy("ask") | {"personas": {"ada": {"phase": "contribute"}}}
        file.write_text(yaml.safe_dump(changed))
        assert await code(gate, "d") == "pending", "a persona with other rights is another persona"


@pytest.mark.parametrize(
    "scope",
    [
        {"seconds": 0},
        {"seconds": -1},
        {"args": {"x": {}}},
        {"args": {"x": {"no": 1}}},
        {"more": 1},
        {"paths": ["a["]},
    ],
)
async def test_a_scope_that_makes_no_sense_is_refused_and_approves_nothing(
    scope: dict[str, Any], opened: Open
) -> None:
    async with opened("ask") as gate:
        ident = await ask(gate)
        with pytest.raises(InvalidArgs):
            await gate.answer(ident, "approve", scope=scope)
        assert await code(gate) == "pending"


async def test_an_approval_under_a_newer_rule_is_found_beside_an_older_one(
    opened: Open, tmp_path: Path, witness: Witness
) -> None:
    import yaml

    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy("ask", rule="old")))
    async with opened(config=file) as gate:
        await gate.answer(await ask(gate), "approve")
        file.write_text(yaml.safe_dump(policy("ask", rule="newer")))
        await gate.answer(await ask(gate), "approve")
        assert await code(gate) == "ok"
    assert witness.arguments == ["1"]


async def test_a_file_that_moved_on_while_the_human_read_is_asked_about_again(
    opened: Open, tmp_path: Path, witness: Witness
) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    args = {"path": "a.txt", "text": "new"}
    async with opened("ask") as gate:
        calling = asyncio.create_task(gate.call("t.write", args))
        while not (questions := await gate.approvals()):
            await asyncio.sleep(0.005)
        assert "-old" in questions[0].preview
        (tmp_path / "a.txt").write_text("other\n")
        await gate.answer(questions[0].id, "approve")
        while not (again := await gate.approvals()):
            await asyncio.sleep(0.005)
        assert "-other" in again[0].preview
        assert again[0].again
        assert witness.ran == []
        await gate.answer(again[0].id, "approve")
        assert (await soon(calling)).ok
    assert witness.arguments == ["a.txt=new"]


async def test_a_paused_persona_asks_nobody(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        await gate.pause("ada", reason="tea")
        assert await code(gate) == "not_allowed"
        assert await gate.approvals() == []
        await gate.resume("ada")
        assert await code(gate) == "pending"
    assert witness.ran == []
