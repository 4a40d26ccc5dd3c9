"""Long arguments: shown whole while somebody may approve them, gone from the journal, and a limit on all of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import KEYS, NOON, FixedClock, Witness, policy
from toolgate import tool
from toolgate.core.errors import CallError
from toolgate.core.ports import Question
from toolgate.gate.reconcile import what_happened
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Filter
from toolgate.storage.sqlite import SqliteBackend

from .conftest import Open

MEGABYTE = 1 << 20
LONG = "line of a program\n" * 20_000 + "the end"


def _more(**limits: Any) -> dict[str, Any]:
    return {"limits": {"journal_bytes": limits}}


async def test_a_question_with_long_arguments_is_whole_when_it_is_opened(opened: Open) -> None:
    async with opened("ask") as gate:
        await gate.call("t.act", {"x": LONG}, wait=False)
        (listed,) = (await gate.services.desk.page(10)).questions
        assert listed.cut > len(LONG)
        assert LONG.startswith(listed.args["x"].removesuffix("…"))
        assert [each.args["x"] for each in await gate.approvals()] == [LONG]
        one = await gate.services.desk.question(listed.id)
        assert one is not None
        assert one.args == {"x": LONG}
        assert (one.cut, one.problem) == (0, "")
        await gate.answer(listed.id, "approve")
        assert (await gate.call("t.act", {"x": LONG})).ok
        assert (await gate.verify()).ok


async def test_a_channel_that_asks_gets_every_byte(opened: Open) -> None:
    seen: list[Question] = []

    class Watching:
        name = "watching"

        async def ask(self, question: Question) -> None:
            seen.append(question)

    async with opened("ask", channels=[Watching()]) as gate:
        waiting = asyncio.create_task(gate.call("t.act", {"x": LONG}))
        while not seen:
            await asyncio.sleep(0.01)
        assert seen[0].args["x"] == LONG
        await gate.answer(seen[0].id, "approve")
        assert (await waiting).ok


@pytest.mark.parametrize("damage", ["gone", "changed"])
async def test_a_question_that_cannot_be_shown_cannot_be_approved(
    opened: Open, damage: str, witness: Witness
) -> None:
    backend = MemoryBackend()
    async with opened("ask", database=backend) as gate:
        await gate.call("t.act", {"x": LONG}, wait=False)
        (seq,) = backend.attached
        if damage == "gone":
            del backend.attached[seq]
        else:
            backend.attached[seq] = backend.attached[seq]._replace(body='{"args":{"x":"harmless"}}')
        (question,) = await gate.approvals()
        shown = await gate.services.desk.question(question.id)
        assert shown is not None
        assert shown.problem
        assert shown.args != {"x": "harmless"}
        for scope in (None, {"seconds": 60}):
            with pytest.raises(CallError) as refused:
                await gate.answer(question.id, "approve", scope=scope)
            assert refused.value.code == "unavailable"
            assert "cannot be shown" in refused.value.message
        assert await gate.answer(question.id, "deny") == "refused"
        assert not witness.ran


async def test_twenty_five_calls_with_long_arguments_leave_little(opened: Open, tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "l.db")
    async with opened(database=backend) as gate:
        for n in range(25):
            await gate.call("t.look", {"x": f"{n}" + "x" * (2 * MEGABYTE)})
        assert await backend.size() < 2 * MEGABYTE
        assert (await gate.verify()).ok


async def test_bytes_per_minute_are_a_limit_and_what_is_over_it_is_only_counted(
    opened: Open, clock: FixedClock, witness: Witness
) -> None:
    async with opened(**_more(per_minute=100_000)) as gate:
        results = [await gate.call("t.act", {"x": "x" * 20_000}) for _ in range(10)]
        refused = [one for one in results if one.error]
        assert 3 <= len(witness.ran) <= 6
        assert {one.error.code for one in refused if one.error} == {"rate_limited"}
        error = refused[0].error
        assert error is not None
        assert "limits.journal_bytes.per_minute" in error.message
        head = (await gate.services.ledger.backend.head()).seq
        for _ in range(5):
            await gate.call("t.act", {"x": "y" * 50_000})
        assert (await gate.services.ledger.backend.head()).seq == head
        assert (await gate.call("t.look", {"x": "small"}, persona="bob")).ok
        clock.advance(60)
        assert (await gate.call("t.act", {"x": "x"})).ok
        assert (await gate.call("t.none", {"x": "x"})).error is not None
        (flood,) = await gate.events(Filter(kinds=("flood",)))
        assert json.loads(flood.body)["count"] == len(refused) + 5


async def test_the_limit_counts_what_was_written_before_a_restart_and_by_others(opened: Open) -> None:
    backend = MemoryBackend()
    async with opened(database=backend, **_more(per_minute=100_000)) as gate:
        while (await gate.call("t.act", {"x": "x" * 20_000})).ok:
            pass
    async with opened(database=backend, **_more(per_minute=100_000)) as gate:
        again = await gate.call("t.act", {"x": "x"})
        assert again.error is not None
        assert again.error.code == "rate_limited"


async def test_many_small_calls_are_not_limited_by_bytes(opened: Open) -> None:
    async with opened(**_more(per_minute=10_000)) as gate:
        assert all([(await gate.call("t.look", {"x": "y" * 500})).ok for _ in range(100)])


async def test_open_questions_of_one_persona_have_a_budget(opened: Open) -> None:
    async with opened("ask", **_more(kept=1_000_000)) as gate:
        codes = [
            (await gate.call("t.act", {"x": f"{n}" + LONG}, wait=False)).error.code
            for n in range(4)  # type: ignore[union-attr]
        ]
        assert codes == ["pending", "pending", "rate_limited", "rate_limited"]
        other = await gate.call("t.act", {"x": LONG}, wait=False, persona="bob")
        assert other.error is not None
        assert other.error.code == "pending"


async def test_what_was_kept_goes_when_the_question_is_over_and_its_time_is_up(
    opened: Open, clock: FixedClock
) -> None:
    backend = MemoryBackend()
    async with opened("ask", database=backend) as gate:
        await gate.call("t.act", {"x": LONG}, wait=False)
        (question,) = await gate.approvals()
        await gate.answer(question.id, "deny")
        assert backend.attached
        clock.advance(2000)
        await gate.call("t.act", {"x": "b" + LONG}, wait=False)
        assert len(backend.attached) == 1


async def test_a_repeated_key_gets_the_whole_result_again(opened: Open) -> None:
    @tool("t.much", writes=["outside"])
    async def much() -> str:
        """Give back a lot."""
        return LONG[:300_000]

    async with opened(
        tools=[much], config=policy() | {"budget": {"tokens": 1_000_000, "bytes": 10_000_000}}
    ) as gate:
        first = await gate.call("t.much", key="k")
        second = await gate.call("t.much", key="k")
        assert first.ok
        assert second.data == first.data == LONG[:300_000]
        assert second.meta is not None
        assert second.meta.cached


@pytest.mark.parametrize("kept", [True, False])
async def test_a_tool_that_undoes_gets_all_its_arguments_or_is_not_asked(opened: Open, kept: bool) -> None:
    taken: list[str] = []

    def back(x: str) -> None:
        taken.append(x)

    @tool("t.send", writes=["outside"], undo=back)
    async def send(x: str) -> str:
        """Send something."""
        return "sent"

    backend = MemoryBackend()
    async with opened(tools=[send], database=backend) as gate:
        result = await gate.call("t.send", {"x": LONG}, conversation="talk")
        assert result.meta is not None
        if not kept:
            backend.attached.clear()
        for wanted in ({"conversation": "talk"}, {}):
            undone = await gate.undo(*([] if wanted else [result.meta.event_id or 0]), **wanted, preview=True)  # type: ignore[arg-type]
            assert undone.ok is kept, undone
            if not kept:
                assert "too long" in str(undone.error)
        assert not kept or (await gate.undo(result.meta.event_id or 0)).ok
        assert taken == ([LONG] if kept else [])


async def test_after_a_crash_a_tool_is_asked_with_all_its_arguments(tmp_path: Path) -> None:
    asked: list[str] = []

    def check(x: str) -> bool:
        asked.append(x)
        return True

    running = asyncio.Event()

    @tool("t.send", writes=["outside"], reconcile=check)
    async def send(x: str) -> str:
        """Send something."""
        running.set()
        await asyncio.sleep(60)
        return "sent"

    backend, clock = MemoryBackend(), FixedClock(NOON)

    def gate() -> Any:
        return toolgate.open(tmp_path, policy(), database=backend, tools=[send], keys=KEYS, clock=clock)

    async with gate() as first:
        call = asyncio.create_task(first.call("t.send", {"x": LONG}))
        await asyncio.wait_for(running.wait(), 10)
        started = backend.journal[-1]
        assert started.kind == "started"
        said = await what_happened(first.services, send, started)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert said[0] == "happened"
    assert asked[0] == LONG


async def test_a_ledger_with_whole_rows_of_before_opens_verifies_and_shows_them(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = MemoryBackend()
    with monkeypatch.context() as before:
        before.setattr("toolgate.ledger.attachments.is_long", lambda text: False)
        async with opened("ask", database=backend) as gate:
            await gate.call("t.act", {"x": LONG}, wait=False)
    async with opened("ask", database=backend) as gate:
        (question,) = await gate.approvals()
        assert question.args == {"x": LONG}
        assert question.cut == 0
        assert (await gate.verify()).ok
        await gate.answer(question.id, "approve")
        assert (await gate.call("t.act", {"x": LONG})).ok
