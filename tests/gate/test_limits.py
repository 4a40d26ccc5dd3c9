"""Sliding windows, exact, several at once; the error says when to come back, and that is true."""

from __future__ import annotations

from typing import Any

import pytest

from gates import FixedClock, Witness
from toolgate import Gate
from toolgate.storage.port import Filter

from .conftest import Open

ROOMY = {"per_minute": 100_000, "per_hour": 1_000_000}


def limits(**persona: Any) -> dict[str, Any]:
    return {"limits": {"global": ROOMY, "persona": ROOMY | persona}}


async def fill(gate: Gate, times: int, **how: Any) -> None:
    for _ in range(times):
        result = await gate.call("t.act", {"x": "in"}, **how)
        assert result.ok, result


async def refused(gate: Gate, **how: Any) -> dict[str, Any]:
    result = await gate.call("t.act", {"x": "over"}, **how)
    assert result.error is not None
    assert result.error.code == "rate_limited", result
    return dict(result.data)


async def test_coming_back_when_told_is_in_time_and_a_moment_earlier_is_not(
    opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened("allow", **limits(per_minute=3)) as gate:
        await fill(gate, 1)
        clock.advance(10.0004)
        await fill(gate, 2)
        wait = (await refused(gate))["retry_after_s"]
        assert wait == 50.0, "59.9996 rounds up to the millisecond, never down"
        clock.advance(wait - 0.001)
        await refused(gate)
        clock.advance(0.001)
        await fill(gate, 1)
        assert (await refused(gate))["retry_after_s"] == pytest.approx(10.0, abs=0.0011)
    assert "over" not in witness.arguments


async def test_minute_hour_and_burst_hold_at_once(opened: Open, clock: FixedClock) -> None:
    async with opened("allow", **limits(per_minute=6, per_hour=8, burst=2)) as gate:
        await fill(gate, 2)
        burst = await refused(gate)
        assert "burst" in burst["limit"]
        assert burst["retry_after_s"] == 20.0
        for _ in range(2):
            clock.advance(20)
            await fill(gate, 2)
        assert "burst" in (await refused(gate))["limit"]
        clock.advance(19.999)
        assert (await refused(gate))["retry_after_s"] == 0.001
        clock.advance(0.001)
        await fill(gate, 2)
        clock.advance(60)
        hour = await refused(gate)
        assert "hour" in hour["limit"]
        assert hour["retry_after_s"] == 3600 - 120


async def test_a_tool_may_have_a_limit_of_its_own(opened: Open, clock: FixedClock) -> None:
    spec = {"limits": {"global": ROOMY, "persona": ROOMY, "tool": {"t.act": {"per_minute": 2}}}}
    async with opened("allow", **spec) as gate:
        await fill(gate, 2)
        await refused(gate)
        assert (await gate.call("t.look")).ok, "another tool is not limited"
        await fill(gate, 2, persona="bob")


async def test_a_limit_by_effect_counts_every_tool_with_it_and_survives_a_restart(
    opened: Open, clock: FixedClock, tmp_path: Any
) -> None:
    """What a call writes may depend on its arguments, so it is recorded and not guessed from the tool."""
    personas = {name: {"phase": "observe", "allow": ["fs.*"]} for name in ("ada", "bob")}
    spec = {"personas": personas, "limits": {"writes": {"project": {"per_hour": 2}}}}
    where = str(tmp_path / "ledger.db")
    async with opened("allow", database=where, **spec) as gate:
        assert (await gate.call("fs.write", {"path": "a.txt", "content": "1"})).ok
        assert (await gate.call("fs.edit", {"path": "a.txt", "find": "1", "replace": "2"})).ok
        assert (await gate.call("fs.write", {"path": "scratch:a.txt", "content": "1"})).ok, "another effect"
        assert (await gate.call("fs.read", {"path": "a.txt"})).ok
    async with opened("allow", database=where, **spec) as gate:
        full = await gate.call("fs.delete", {"path": "a.txt"})
        assert full.error is not None
        assert full.error.code == "rate_limited"
        assert full.data["limit"] == "limits.writes.project.per_hour for ada"
        assert "limits.writes.project.per_hour for ada allows 2 calls in 3600 s" in full.error.message
        (row,) = await gate.events(Filter(kinds=("limited",)))
        assert "limits.writes.project.per_hour for ada" in row.body
        assert (await gate.call("fs.write", {"path": "b.txt", "content": "1"}, persona="bob")).ok
        clock.advance(3601)
        assert (await gate.call("fs.delete", {"path": "a.txt"})).ok


async def test_a_persona_has_its_own_limit_by_effect(opened: Open) -> None:
    personas = {"ada": {"allow": ["fs.*"], "limits": {"writes": {"project": {"per_minute": 1}}}}}
    async with opened("allow", personas=personas, limits={"global": ROOMY}) as gate:
        assert (await gate.call("fs.write", {"path": "a.txt", "content": "1"})).ok
        full = await gate.call("fs.write", {"path": "a.txt", "content": "2"})
        assert full.data["limit"] == "personas.ada.limits.writes.project.per_minute"


async def test_a_subagent_counts_for_its_parent_and_the_parent_for_itself(opened: Open) -> None:
    personas = {
        "ada": {"limits": {"per_minute": 3}},
        "kid": {"parent": "ada", "limits": {"per_minute": 2}},
    }
    async with opened("allow", personas=personas, limits={"global": ROOMY}) as gate:
        await fill(gate, 2, persona="kid")
        assert "kid" in (await refused(gate, persona="kid"))["limit"]
        await fill(gate, 1)
        assert "ada" in (await refused(gate))["limit"]


async def test_a_subagent_is_stopped_by_its_parents_limit(opened: Open) -> None:
    personas = {"ada": {"limits": {"per_minute": 2}}, "kid": {"parent": "ada", "limits": {"per_minute": 50}}}
    async with opened("allow", personas=personas, limits={"global": ROOMY}) as gate:
        await fill(gate, 1, persona="ada")
        await fill(gate, 1, persona="kid")
        assert "ada" in (await refused(gate, persona="kid"))["limit"]


async def test_limits_survive_a_restart(opened: Open, tmp_path: Any) -> None:
    where = str(tmp_path / "ledger.db")
    async with opened("allow", database=where, **limits(per_minute=2)) as gate:
        await fill(gate, 2)
    async with opened("allow", database=where, **limits(per_minute=2)) as gate:
        await refused(gate)


async def test_an_approval_that_meets_a_limit_stays_unused(
    opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened("ask", **limits(per_minute=1)) as gate:
        assert (await gate.call("system.ping")).ok
        pending = await gate.call("t.act", {"x": "in"}, wait=False)
        await gate.answer(pending.data["question"], "approve")
        await refused_with(gate, "in")
        clock.advance(60)
        assert (await gate.call("t.act", {"x": "in"}, wait=False)).ok
    assert witness.arguments == ["in"]


async def test_nobody_is_asked_about_a_call_that_a_limit_stops_until_its_question_has_expired(
    opened: Open, clock: FixedClock
) -> None:
    async with opened("ask", **limits(per_hour=1)) as gate:
        assert (await gate.call("system.ping")).ok
        await refused_with(gate, "in")
        assert not (await gate.approvals())
        (row,) = await gate.events(Filter(kinds=("limited",)))
        assert row.tool == "t.act"
        clock.advance(3600 - 800)
        asked = await gate.call("t.act", {"x": "in"}, wait=False)
        assert asked.error is not None
        assert asked.error.code == "pending", "there is room again before it expires"


async def refused_with(gate: Gate, x: str) -> None:
    result = await gate.call("t.act", {"x": x}, wait=False)
    assert result.error is not None
    assert result.error.code == "rate_limited"


async def test_a_flood_of_refusals_is_counted_and_not_stored_one_by_one(opened: Open) -> None:
    async with opened("deny") as gate:
        for _ in range(200):
            assert not (await gate.call("t.act")).ok
        assert len(await gate.events(Filter(kinds=("denied",)))) == 30
        await gate.pipeline.refusals.close()
        (flood,) = await gate.events(Filter(kinds=("flood",)))
        assert '"count":170' in flood.body
        assert (await gate.stats())["personas"][0]["refused"] == 200


async def test_a_paused_persona_is_recorded_once_for_each_refusal(opened: Open) -> None:
    async with opened("allow") as gate:
        await gate.pause("ada")
        result = await gate.call("t.act")
        assert result.error is not None
        assert result.error.code == "not_allowed"
        assert [row.kind for row in await gate.events(Filter(tool="t.act"))] == ["denied"]


async def test_a_clock_that_jumps_back_revives_nothing(
    opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened("ask", consent={"expires_s": 100}) as gate:
        pending = await gate.call("t.act", {"x": "1"}, wait=False)
        await gate.answer(pending.data["question"], "approve")
        clock.advance(101)
        assert (await gate.call("t.look", persona="bob", wait=False)).error is not None
        clock.advance(-40)
        result = await gate.call("t.act", {"x": "1"}, wait=False)
        assert result.error is not None
        assert result.error.code == "pending", "a little back: time stands still, the approval stays expired"
        clock.advance(-100)
        result = await gate.call("t.act", {"x": "1"}, wait=False)
        assert result.error is not None
        assert result.error.code == "unavailable", "far back: nothing runs"
        clock.advance(200)
        assert (await gate.verify()).ok
    assert witness.ran == []
