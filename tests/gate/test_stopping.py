"""Time-outs, cancellation and tools that raise: the journal says what is known, and no more than that."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import PATIENCE, Witness, soon
from toolgate import Change, Context, FileChange, MountPath, Tool, tool
from toolgate.storage.port import Filter

from .conftest import Open


async def ends(gate: toolgate.Gate, name: str) -> list[str]:
    rows = await gate.events(Filter(tool=name))
    return [row.kind for row in rows if row.kind not in ("started", "asked", "approved")]


def endless(name: str, began: asyncio.Event, **options: Any) -> Tool:
    @tool(name, **options)
    async def run(x: str = "") -> str:
        """Never ends by itself."""
        began.set()
        await asyncio.Event().wait()
        return x

    return run


async def test_a_read_that_takes_too_long_failed(opened: Open) -> None:
    slow = endless("t.slow", asyncio.Event(), reads=["system"], timeout=0.01)
    async with opened("allow", [slow]) as gate:
        result = await soon(gate.call("t.slow"))
        assert result.error is not None
        assert result.error.code == "timeout"
        assert await ends(gate, "t.slow") == ["failed"]


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ("none", "unknown", "unknown_outcome"), (None, "unknown", "unknown_outcome"), ("raises", "unknown", "unknown_outcome"),
        (False, "failed", "timeout"), ("not", "failed", "timeout"), (True, "committed", ""), ("happened", "committed", ""),
        ("nonsense", "unknown", "unknown_outcome"),
    ],
)  # fmt: skip
async def test_an_effect_that_takes_too_long_is_unknown_unless_it_is_proven(
    answer: Any, kind: str, code: str, opened: Open
) -> None:
    def reconcile(x: str) -> Any:
        assert x == "mine"
        if answer == "raises":
            raise RuntimeError("cannot tell")
        return answer

    more = {} if answer == "none" else {"reconcile": reconcile}
    slow = endless("t.slow", asyncio.Event(), writes=["outside"], timeout=0.2, **more)
    async with opened("allow", [slow]) as gate:
        result = await soon(gate.call("t.slow", {"x": "mine"}, key="k"))
        assert (result.error.code if result.error else "") == code
        assert await ends(gate, "t.slow") == [kind]
        again = await soon(gate.call("t.slow", {"x": "mine"}, key="k"))
        if kind == "unknown":
            assert again.error is not None
            assert again.error.code == "unknown_outcome"
            assert len(await ends(gate, "t.slow")) == 2, "refused, and not run again"


async def test_a_change_that_takes_too_long_is_settled_by_its_files(opened: Open, tmp_path: Path) -> None:
    released = threading.Event()

    def plan(text: str) -> Change:
        """Write."""
        return Change((FileChange(MountPath.parse("slow.txt"), None, text.encode()),))

    @tool("t.slowly", writes=["project"], plan=plan, timeout=0.3)
    def write(change: Change) -> str:
        released.wait(PATIENCE)
        (tmp_path / "slow.txt").write_bytes(change.files[0].after or b"")
        return "written"

    async with opened("allow", [write]) as gate:
        calling = asyncio.create_task(gate.call("t.slowly", {"text": "new"}))
        await asyncio.sleep(0.6)  # past its time; a change under way is waited for
        released.set()
        result = await soon(calling)
        assert result.ok, result
        assert await ends(gate, "t.slowly") == ["committed"]


async def test_a_cancelled_effect_is_settled_and_the_cancellation_goes_on(opened: Open) -> None:
    began = asyncio.Event()
    async with opened("allow", [endless("t.slow", began, writes=["outside"])]) as gate:
        calling = asyncio.create_task(gate.call("t.slow"))
        await soon(began.wait())
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(calling)
        assert await ends(gate, "t.slow") == ["unknown"]


async def test_a_cancelled_read_failed(opened: Open) -> None:
    began = asyncio.Event()
    async with opened("allow", [endless("t.slow", began, reads=["system"])]) as gate:
        calling = asyncio.create_task(gate.call("t.slow"))
        await soon(began.wait())
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(calling)
        assert await ends(gate, "t.slow") == ["failed"]


@pytest.mark.parametrize("database", ["memory", "file"])
async def test_cancelling_twice_never_calls_an_effect_that_happened_failed(
    database: str, opened: Open, tmp_path: Path, witness: Witness
) -> None:
    began, released, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    @tool("t.blocks", writes=["outside"])
    def run(context: Context) -> str:
        """Goes on in its thread whatever the caller does."""
        loop.call_soon_threadsafe(began.set)
        released.wait(PATIENCE)
        witness.saw(context, "ran")
        return "done"

    where = "memory" if database == "memory" else str(tmp_path / "ledger.db")
    async with opened("allow", [run], database=where) as gate:
        calling = asyncio.create_task(gate.call("t.blocks", key="once"))
        await soon(began.wait())
        calling.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(calling)
        released.set()
        assert await ends(gate, "t.blocks") == ["unknown"]
        again = await soon(gate.call("t.blocks", key="once"))
        assert again.error is not None
        assert again.error.code == "unknown_outcome"
    assert len(witness.ran) <= 1


async def test_a_cancellation_while_it_is_settled_is_recorded_once(opened: Open, tmp_path: Path) -> None:
    """Cancelled at every possible moment: exactly one end, or no start at all."""
    async with opened("allow", database=str(tmp_path / "ledger.db")) as gate:
        for turns in range(60):
            calling = asyncio.create_task(gate.call("t.act", {"x": str(turns)}))
            for _ in range(turns):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        rows = await gate.events(Filter(tool="t.act", limit=10_000))
        for call in {row.call for row in rows}:
            kinds = [row.kind for row in rows if row.call == call]
            assert kinds in (["started", "committed"], ["started", "failed"], ["started", "unknown"]), kinds
        assert (await gate.ledger_state())["running"] == 0


async def test_a_caller_who_leaves_while_a_human_thinks_leaves_the_question_open(
    opened: Open, witness: Witness
) -> None:
    async with opened("ask") as gate:
        calling = asyncio.create_task(gate.call("t.act", {"x": "later"}))
        while not (questions := await gate.approvals()):
            await asyncio.sleep(0.005)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(calling)
        assert [question.id for question in await gate.approvals()] == [questions[0].id]
        await gate.answer(questions[0].id, "approve")
        assert witness.ran == [], "an approval whose caller is gone runs nothing"
        assert (await soon(gate.call("t.act", {"x": "later"}))).ok
    assert witness.arguments == ["later"]


async def test_what_a_tool_raises_is_a_message_for_the_model_and_a_trace_for_the_log(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened("allow") as gate:
        with caplog.at_level(logging.ERROR, "toolgate"):
            result = await gate.call("t.fail", {"x": "fly"})
        assert result.error is not None
        assert result.error.code == "failed"
        assert "could not fly" in result.error.message
        assert "Traceback" not in json.dumps(result.as_dict())
        assert "gates.py" not in json.dumps(result.as_dict())
        assert caplog.records
        assert caplog.records[-1].exc_info is not None
        assert await ends(gate, "t.fail") == ["failed"]


async def test_a_human_can_say_how_an_unknown_call_ended(opened: Open, clock: Any) -> None:
    """Also after a question of the same call has expired, which says nothing about how it ended."""
    async with opened(
        "allow", [endless("t.slow", asyncio.Event(), writes=["outside"], timeout=0.01)]
    ) as gate:
        result = await soon(gate.call("t.slow", key="k"))
        await gate.resolve(result.meta.call_id, "not")
        again = await soon(gate.call("t.slow", key="k"))
        assert again.meta.call_id != result.meta.call_id
        assert await ends(gate, "t.slow") == ["unknown", "resolved", "unknown"]
