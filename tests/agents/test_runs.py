"""Runs: a question, tools through the gate, an answer; what is recorded of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agents.world import CART, Witness, call, calls, world
from toolgate.agents.budget import RunLimits
from toolgate.core.ports import Question
from toolgate.testing import Approve, Script


async def test_a_persona_reads_through_the_gate_and_answers(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    script = [
        calls(call("code.search", pattern="def total"), text="I look for it."),
        calls(call("code.read", path="cart.py"), expect="cart.py"),
        {"text": "cart.py line 6 divides by 10.", "expect": "discount / 10"},
    ]
    async with world(script, tmp_path) as (gate, agents):
        run = await agents.drive(await agents.start("why is the discount wrong?"))
        assert (run.state, run.answer) == ("done", "cart.py line 6 divides by 10.")
        events = [row for row in await gate.events() if row.kind == "committed"]
        assert [row.tool for row in reversed(events)] == ["code.search", "code.read"]
        assert {row.conversation for row in events} == {run.conversation}
        assert run.spent["calls"] == 2
        assert run.spent["asks"] == 3


async def test_calls_of_one_reply_run_in_order_unless_all_only_read(tmp_path: Path) -> None:
    witness = Witness()
    script = [calls(call("t.act", x="1"), call("t.look", x="2"), call("t.act", x="3")), "done"]
    async with world(script, tmp_path, witness=witness) as (_, agents):
        run = await agents.drive(await agents.start("do it"))
    assert run.state == "done"
    assert witness.ran == ["act 1", "look 2", "act 3"]


async def test_the_time_that_a_human_takes_is_not_the_runs(tmp_path: Path) -> None:
    class Slow(Script):
        async def ask(self, question: Question) -> None:
            await asyncio.sleep(0.4)
            await super().ask(question)

    witness, human = Witness(), Slow(Approve("t.act"))
    script = [calls(call("t.act", x="1")), calls(call("t.look", x="2")), "done"]
    rules = [{"tools": ["t.act"], "decision": "ask", "reason": "somebody looks"}]
    async with world(script, tmp_path, witness=witness, channels=[human], policy={"rules": rules}) as (
        gate,
        agents,
    ):
        human.gate = gate
        run = await agents.drive(await agents.start("do it", limits=RunLimits(seconds=0.35)), attended=True)
    assert (run.state, witness.ran) == ("done", ["act 1", "look 2"])
    assert run.spent["seconds"] < 0.35
