"""One persona cannot fill the disk with what it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toolgate
from gates import FixedClock
from toolgate.core.names import HUMAN
from toolgate.facade import Gate
from toolgate.features.memory import recalls
from toolgate.features.memory.recalls import MOST_CONVERSATIONS

from .world import POLICY, done, failed, recalled, stored

SMALL = POLICY | {"limits": {"journal_bytes": {"per_minute": 100_000}}}
TEXT = "Alice has a long story about the sea. " * 500


def text(number: int) -> str:
    return f"{number} {TEXT}"


async def test_texts_of_a_minute_are_bounded_for_each_persona_and_not_for_the_human(tmp_path: Path) -> None:
    clock = FixedClock()
    async with toolgate.open(tmp_path, SMALL, "memory", clock=clock) as gate:
        for number in range(6):
            await stored(gate, text(number))
        refused = await failed(gate, "memory.store", {"content": "one more"})
        assert refused.error is not None
        assert refused.error.code == "rate_limited"
        assert "limits.journal_bytes.per_minute allows 100,000" in refused.error.message
        assert "ada" in refused.error.message
        one = await failed(gate, "memory", {"action": "store", "content": "one more"})
        assert one.error is not None
        assert one.error.code == "rate_limited"
        await stored(gate, "of another persona of the same user", "bea")
        for number in range(10, 18):
            await stored(gate, text(number), HUMAN)
        clock.advance(61)
        await stored(gate, "after a minute")


async def test_versions_count_whatever_was_changed_of_them(tmp_path: Path) -> None:
    """Each keeps the whole text once more, also where only a tag is another."""
    async with toolgate.open(tmp_path, SMALL, "memory", clock=FixedClock()) as gate:
        ident = await stored(gate, text(0))
        codes = [await _tagged(gate, ident, number) for number in range(8)]
        assert codes == ["ok"] * 5 + ["rate_limited"] * 3
        assert (await done(gate, "memory.list", {"memory_id": ident}))["success"]


async def test_what_was_written_before_a_restart_counts(tmp_path: Path) -> None:
    for number in range(2):
        async with toolgate.open(tmp_path, SMALL) as gate:
            for each in range(3):
                await stored(gate, text(10 * number + each))
    async with toolgate.open(tmp_path, SMALL) as gate:
        refused = await failed(gate, "memory.store", {"content": "one more"})
        assert refused.error is not None
        assert refused.error.code == "rate_limited"


async def _tagged(gate: Gate, ident: str, number: int) -> str:
    args: dict[str, Any] = {"memory_id": ident, "tags": [f"t{number}"]}
    result = await gate.call("memory.update", args, persona="ada")
    return "ok" if result.error is None else result.error.code


async def test_recalls_under_ever_new_conversations_leave_a_bounded_number_of_rows(kept: Gate) -> None:
    ident = await stored(kept, "Alice likes apples.")
    for number in range(MOST_CONVERSATIONS + 5):
        await recalled(kept, "apples", conversation=f"{number:0>250}")
    tables = (await kept.feature("memory").records()).tables
    assert await recalls.counts(tables, [ident]) == {ident: MOST_CONVERSATIONS + 5}
    rows = await tables.fetch("SELECT * FROM memory_usage")
    assert len(rows) == MOST_CONVERSATIONS + 1
    assert max(len(row["conversation"]) for row in rows) < 20
