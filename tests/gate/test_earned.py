"""Adaptive limits: a good record raises a persona's own limits, trouble takes that away, and both are on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates import FixedClock, policy
from toolgate import Gate
from toolgate.core.errors import ConfigError
from toolgate.gate.earned import credit, earned
from toolgate.storage.port import Filter

from .conftest import Open

ADAPTIVE = {"per_minute": 10, "adaptive": {"per_minute": 14, "every": 5}}
PERSONAS: dict[str, Any] = {"ada": {"phase": "observe", "limits": ADAPTIVE}, "bob": {"phase": "observe"}}


async def write(gate: Gate, clock: FixedClock, count: int, name: str = "file") -> None:
    """Useful calls, in no hurry."""
    for number in range(count):
        clock.advance(7)
        result = await gate.call("t.write", {"path": f"{name}{number}.txt", "text": "x"})
        assert result.ok, result


async def room(gate: Gate, clock: FixedClock) -> int:
    """How many calls fit into a minute now."""
    clock.advance(3600)
    for made in range(30):
        if not (await gate.call("t.look", {"x": "a"})).ok:
            clock.advance(60)
            return made
    raise AssertionError("no limit")


async def changes(gate: Gate) -> list[tuple[str, int, int, str]]:
    rows = await gate.events(Filter(kinds=("adapted",)))
    bodies = [json.loads(row.body) for row in rows]
    return [(row.persona, body["before"], body["step"], body["reason"]) for row, body in zip(rows, bodies, strict=True)]  # fmt: skip


async def test_useful_calls_raise_the_limit_step_by_step_and_never_beyond_what_is_written(
    opened: Open, clock: FixedClock
) -> None:
    async with opened("allow", personas=PERSONAS) as gate:
        assert await room(gate, clock) == 10
        await write(gate, clock, 5)
        assert await room(gate, clock) == 11
        await write(gate, clock, 40, "more")
        assert await room(gate, clock) == 14
        assert [one[:3] for one in await changes(gate)] == [("ada", 0, 1), ("ada", 1, 4)]
        assert all("useful calls" in reason for *_, reason in await changes(gate))
        assert (await gate.verify()).ok


async def test_pings_repeats_and_tries_earn_nothing(opened: Open, clock: FixedClock) -> None:
    async with opened("allow", personas=PERSONAS) as gate:
        for number in range(25):
            clock.advance(7)
            await gate.call("t.look", {"x": str(number)})
            await gate.call("t.act", {"x": str(number)})  # outside, and nobody was asked
            await gate.call("t.write", {"path": "same.txt", "text": str(number)})
            clock.advance(14)
        assert await room(gate, clock) == 10
        found = await earned(gate.services.ledger, "ada", 5)
        assert (found.step, found.useful) == (0, 1), "one file, however often it is written"


@pytest.mark.parametrize("trouble", ["failed", "denied", "undone"])
async def test_trouble_takes_the_raise_away_at_once_and_says_why(
    opened: Open, clock: FixedClock, trouble: str
) -> None:
    rules = [
        {"name": "no", "persona": "*", "tools": ["t.act"], "decision": "deny"},
        {"name": "yes", "persona": "*", "tools": ["t.*", "fs.undo", "undo.*"], "decision": "allow"},
    ]
    async with opened(personas=PERSONAS, policy={"rules": rules}) as gate:
        await write(gate, clock, 10)
        assert await room(gate, clock) == 12
        clock.advance(60)
        if trouble == "failed":
            await gate.call("t.fail", {"x": "it"})
        elif trouble == "denied":
            await gate.call("t.act", {"x": "it"})
        else:
            rows = await gate.events(Filter(kinds=("committed",), tool="t.write", newest_first=True, limit=1))
            assert (await gate.undo(rows[0].seq)).ok
        step = 1 if trouble == "failed" else 0
        last = (await changes(gate))[-1]
        assert last[:3] == ("ada", 2, step), "on record with the trouble, before anybody asks"
        assert trouble in last[3]
        assert await room(gate, clock) == 10 + step


async def test_the_step_is_the_same_after_a_restart_and_for_another_process(
    opened: Open, clock: FixedClock, tmp_path: Any
) -> None:
    database = str(tmp_path / "ledger.db")
    async with opened("allow", personas=PERSONAS, database=database) as gate:
        await write(gate, clock, 10)
    async with (
        opened("allow", personas=PERSONAS, database=database) as one,
        opened("allow", personas=PERSONAS, database=database) as other,
    ):
        assert await room(one, clock) == 12
        await other.call("t.fail", {"x": "it"})
        assert await room(one, clock) == 11


async def test_a_record_older_than_a_day_counts_no_more(opened: Open, clock: FixedClock) -> None:
    async with opened("allow", personas=PERSONAS) as gate:
        await write(gate, clock, 20)
        assert await room(gate, clock) == 14
        clock.advance(86_400)
        assert await room(gate, clock) == 10
        assert (await changes(gate))[-1][:3] == ("ada", 4, 0)


async def test_a_call_that_led_to_an_answer_counts_and_no_persona_can_say_so_itself(
    opened: Open, clock: FixedClock
) -> None:
    personas = PERSONAS | {"ada": PERSONAS["ada"] | {"allow": ["events.log"]}}
    async with opened("allow", personas=personas) as gate:
        made = [(await gate.call("t.look", {"x": str(number)})).meta.call_id for number in range(6)]
        forged = {"type": "credit", "op": "ada", "rationale": "I am good", "data": {"calls": made}}
        assert (await gate.call("events.log", forged)).ok
        ledger = gate.services.ledger
        assert (await earned(ledger, "ada", 5)).useful == 0
        await credit(ledger, "ada", made, "cited in an answer")
        await credit(ledger, "ada", made[:3], "cited in another")
        assert (await earned(ledger, "ada", 5)).useful == 5, "each once, and of one answer five"
        assert (await earned(ledger, "bob", 5)).useful == 0


async def test_the_limit_of_everybody_of_a_parent_and_of_a_tool_stay(opened: Open, clock: FixedClock) -> None:
    personas = {"boss": {"phase": "observe", "limits": {"per_minute": 11}}, "ada": PERSONAS["ada"] | {"parent": "boss"}}  # fmt: skip
    async with opened("allow", personas=personas) as gate:
        await write(gate, clock, 20)
        assert await room(gate, clock) == 11


@pytest.mark.parametrize("most", [{"per_minute": 10}, {"per_minute": 21}, {"per_hour": 1, "per_minute": 12}])
async def test_a_raise_is_a_raise_and_at_most_to_twice_the_limit(opened: Open, most: dict[str, int]) -> None:
    spec = {"ada": {"phase": "observe", "limits": {"per_minute": 10, "adaptive": most}}}
    with pytest.raises(ConfigError, match="adaptive"):
        async with opened(config=policy("allow", personas=spec)):
            pass


async def test_the_step_is_shown_with_what_it_raises(opened: Open, clock: FixedClock) -> None:
    async with opened("allow", personas=PERSONAS) as gate:
        await write(gate, clock, 10)
        assert await room(gate, clock) == 12
        shown = await gate.earned("ada")
        assert shown is not None
        assert (shown["step"], shown["of"], shown["useful"]) == (2, 4, 10)
        assert shown["limits"] == [{"limit": "ada, per minute", "says": 10, "now": 12, "most": 14}]
        assert await gate.earned("bob") is None
        (usage,) = (await gate.stats("1day", "ada"))["personas"]
        assert (usage["adapted"]["step"], usage["adapted"]["before"]) == (2, 0)


async def test_a_call_that_a_human_let_through_counts_and_one_that_was_refused_takes_all(
    opened: Open, clock: FixedClock
) -> None:
    async with opened("ask", personas=PERSONAS) as gate:
        ledger = gate.services.ledger
        for number in range(5):
            clock.advance(60)
            asked = await gate.call("t.act", {"x": str(number)}, wait=False)
            await gate.answer(asked.data["question"], "approve")
            assert (await gate.call("t.act", {"x": str(number)}, wait=False)).ok
        assert (await earned(ledger, "ada", 5)).step == 1
        asked = await gate.call("t.act", {"x": "again"}, wait=False)
        await gate.answer(asked.data["question"], "deny")
        found = await earned(ledger, "ada", 5)
        assert (found.step, "refused" in found.reason) == (0, True)
