"""An explicit key gives back what the first call gave; nothing else does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gates import FixedClock, Witness, soon
from toolgate import Change, FileChange, MountPath, tool
from toolgate.core.errors import NotFound
from toolgate.storage.port import Filter

from .conftest import Open


async def test_a_repeated_key_gives_the_stored_result_and_runs_nothing(
    opened: Open, witness: Witness
) -> None:
    async with opened("allow") as gate:
        first = await gate.call("t.act", {"x": "1"}, key="k")
        again = await gate.call("t.act", {"x": "1"}, key="k")
        assert (again.ok, again.data) == (True, {"did": "1"})
        assert (first.meta.cached, again.meta.cached) == (False, True)
        assert again.meta.call_id == first.meta.call_id
    assert witness.arguments == ["1"]


async def test_without_a_key_the_same_call_runs_again(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        for _ in range(2):
            assert (await gate.call("t.act", {"x": "1"})).ok
    assert witness.arguments == ["1", "1"]


async def test_the_same_key_with_other_arguments_is_a_conflict(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        await gate.call("t.act", {"x": "1"}, key="k")
        for tool_name, args in (("t.act", {"x": "2"}), ("t.look", {"x": "1"})):
            result = await gate.call(tool_name, args, key="k")
            assert result.error is not None
            assert result.error.code == "conflict"
    assert witness.arguments == ["1"]


async def test_a_key_means_nothing_to_another_persona(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        assert (await gate.call("t.act", {"x": "1"}, key="k", persona="ada")).ok
        assert (await gate.call("t.act", {"x": "2"}, key="k", persona="bob")).ok
    assert witness.arguments == ["1", "2"]


async def test_what_failed_may_run_again_under_its_key(opened: Open, witness: Witness) -> None:
    async with opened("allow") as gate:
        for _ in range(2):
            assert not (await gate.call("t.fail", {"x": "f"}, key="k")).ok
    assert witness.arguments == ["f", "f"]


async def test_a_key_is_forgotten_after_two_days_and_not_before(
    opened: Open, witness: Witness, clock: FixedClock
) -> None:
    async with opened("allow") as gate:
        await gate.call("t.act", {"x": "1"}, key="k")
        clock.advance(48 * 3600 - 0.000001)
        assert (await gate.call("t.act", {"x": "1"}, key="k")).meta.cached
        clock.advance(0.000001)
        assert not (await gate.call("t.act", {"x": "1"}, key="k")).meta.cached
        assert (await gate.verify()).ok
    assert witness.arguments == ["1", "1"]


async def test_a_key_whose_first_call_still_runs_is_a_conflict(opened: Open, tmp_path: Path) -> None:
    began, released = asyncio.Event(), asyncio.Event()

    @tool("t.gated", writes=["outside"])
    async def gated() -> str:
        """Waits."""
        began.set()
        await released.wait()
        return "done"

    async with opened("allow", [gated], database=str(tmp_path / "ledger.db")) as gate:
        first = asyncio.create_task(gate.call("t.gated", key="k"))
        await soon(began.wait())
        twin = await soon(gate.call("t.gated", key="k"))
        assert twin.error is not None
        assert twin.error.code == "conflict"
        released.set()
        assert (await soon(first)).data == "done"


async def test_twins_with_one_key_at_the_same_moment_run_once(
    opened: Open, witness: Witness, tmp_path: Path
) -> None:
    async with opened("allow", database=str(tmp_path / "ledger.db")) as gate:
        results = await asyncio.gather(*(gate.call("t.act", {"x": "1"}, key="k") for _ in range(8)))
        assert {result.error.code for result in results if result.error} <= {"conflict"}
    assert witness.arguments == ["1"]


async def test_a_repeated_key_of_a_change_gives_the_stored_result_although_the_file_has_changed(
    opened: Open, witness: Witness
) -> None:
    args = {"path": "a.txt", "text": "new"}
    async with opened("allow") as gate:
        assert (await gate.call("t.write", args, key="k")).ok
        again = await gate.call("t.write", args, key="k")
        assert (again.ok, again.meta.cached, again.data) == (True, True, "written")
        other = await gate.call("t.write", args | {"text": "other"}, key="k")
        assert other.error is not None
        assert other.error.code == "conflict"
        assert (await gate.verify()).ok
    assert witness.arguments == ["a.txt=new"]


async def test_a_change_that_cannot_be_planned_twice_is_still_answered(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "gone.txt"
    file.write_text("x")

    def plan() -> Change:
        """Delete."""
        if not file.exists():
            raise NotFound("there is nothing to delete")
        return Change((FileChange(MountPath.parse("gone.txt"), file.read_bytes(), None),))

    @tool("t.delete", writes=["project"], plan=plan)
    def delete(change: Change) -> str:
        file.unlink()
        return "deleted"

    async with opened("allow", [delete]) as gate:
        for _ in range(2):
            assert (await gate.call("t.delete", key="k")).data == "deleted"


async def test_a_result_that_has_no_canonical_form_is_given_back_whole(opened: Open) -> None:
    deep: Any = {"n": 2**60, "f": 0.5}

    @tool("t.huge", writes=["outside"])
    async def huge() -> dict[str, Any]:
        """A very large number."""
        return deep

    async with opened("allow", [huge]) as gate:
        for cached in (False, True):
            result = await gate.call("t.huge", key="k")
            assert (result.ok, result.data, result.meta.cached) == (True, deep, cached)
        assert [row.kind for row in await gate.events(Filter(tool="t.huge"))] == ["started", "committed"]


async def test_a_key_saves_a_second_question(opened: Open, witness: Witness) -> None:
    async with opened("ask") as gate:
        pending = await gate.call("t.act", {"x": "1"}, key="k", wait=False)
        await gate.answer(pending.data["question"], "approve")
        assert (await gate.call("t.act", {"x": "1"}, key="k", wait=False)).ok
        assert (await gate.call("t.act", {"x": "1"}, key="k", wait=False)).meta.cached
        assert await gate.approvals() == []
    assert witness.arguments == ["1"]
