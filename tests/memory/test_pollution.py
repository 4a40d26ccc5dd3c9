"""A memory that is nine tenths junk is cleaned by the audit, what is true stays, and every removal can be undone."""

from __future__ import annotations

from pathlib import Path

import toolgate
from sampling import fewer

from .pollution import KINDS, clean, figures, fill, polluted, unmask
from .world import POLICY


async def test_a_polluted_memory_is_cleaned_and_the_cleaning_is_undone(tmp_path: Path) -> None:
    made = polluted(fewer(10_000, 600))
    size, facts = len(made.lines), len(made.facts)
    async with toolgate.open(tmp_path, POLICY, "memory") as gate:
        await fill(gate, made)
        before = await figures(gate, made)
        assert before.items == size
        report, events = await clean(gate)
        gone = set(report.to_forget(KINDS))
        assert not any(
            ident.startswith(("m_new", "m_old")) for ident in gone
        )  # no fact, nor one that was replaced
        assert len(gone) > 0.6 * (size - facts)  # a third of the junk is of kinds that no rule knows
        loop = next(one for one in report.proposals if one.sample == made.invented)
        assert "check that it is true" in loop.why
        after = await figures(gate, made)
        assert after.items == size - len(gone)
        assert after.first >= before.first
        assert after.ndcg > before.ndcg
        assert after.noise < before.noise
        assert after.listed <= before.listed
        events.append(await unmask(gate))
        assert (await figures(gate, made, 10)).invented == 0.0
        for event in reversed(events):
            assert (await gate.undo(event)).ok
        assert await figures(gate, made) == before
