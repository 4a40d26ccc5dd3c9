"""Budgets of the memory: what a persona wrote in a while, and what the model that writes summaries may use in a day.

The model's is kept in a table, so that neither a restart nor a second process has more.

Whoever asks the model reserves first what the answer can cost at most, in one statement that fails where it does not fit,
and settles afterwards. A process that dies in between leaves its reservation as spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolgate.features.memory.config import RollupBudgetSpec
from toolgate.storage.tables import Statement, Tables

_ENDLESS = 10**15


class ModelCost(NamedTuple):
    tokens: int
    usd: float


class DailySpending:
    def __init__(self, tables: Tables, day: str, limits: RollupBudgetSpec) -> None:
        self._tables, self._day, self._limits = tables, day, limits

    async def reserve(self, most: ModelCost) -> bool:
        """Whether so much was left; then it is taken."""
        tokens, usd = self._limits.tokens or _ENDLESS, float(self._limits.usd or _ENDLESS)
        _, taken = await self._tables.transaction(
            [
                Statement(
                    "INSERT INTO memory_spending (day, asks, tokens, usd) VALUES (?, 0, 0, 0) ON CONFLICT DO NOTHING",
                    (self._day,),
                ),
                Statement(
                    "UPDATE memory_spending SET asks = asks + 1, tokens = tokens + ?, usd = usd + ?"
                    " WHERE day = ? AND tokens + ? <= ? AND usd + ? <= ? RETURNING asks",
                    (most.tokens, most.usd, self._day, most.tokens, tokens, most.usd, usd),
                ),
            ]
        )
        return bool(taken)

    async def settle(self, reserved: ModelCost, used: ModelCost) -> None:
        await self._tables.execute(
            "UPDATE memory_spending SET tokens = tokens + ?, usd = usd + ? WHERE day = ?",
            used.tokens - reserved.tokens, used.usd - reserved.usd, self._day,
        )  # fmt: skip

    async def told(self) -> dict[str, Any]:
        """What was used on that day, and of how much."""
        rows = await self._tables.fetch(
            "SELECT asks, tokens, usd FROM memory_spending WHERE day = ?", self._day
        )
        used = dict(rows[0]) if rows else {"asks": 0, "tokens": 0, "usd": 0.0}
        limits = {name: value for name, value in self._limits.model_dump().items() if value}
        return {"day": self._day, **used, "usd": round(max(used["usd"], 0.0), 6), "limits": limits}


def spent(told: Mapping[str, Any]) -> str:
    """In words, what `told` says."""
    limits = told["limits"]
    parts = [f"{told[name]:,g} of {limits[name]:,g} {name.replace('usd', 'USD')}" for name in ("tokens", "usd") if name in limits]  # fmt: skip
    return f"{told['day']}: asked {told['asks']} times, {', '.join(parts)}"


async def written_since(tables: Tables, persona: str, since: int) -> int:
    """Characters of all versions that the persona has made since then, whatever became of them."""
    size = (
        "SUM(LENGTH(content) + LENGTH(evidence) + LENGTH(supersedes) + LENGTH(contradicts) + LENGTH(sources))"
    )
    rows = await tables.fetch(
        " UNION ALL ".join(
            f"SELECT {size} AS n FROM {table} WHERE persona = ? AND changed_at > ?"
            for table in ("memory_items", "memory_history")
        ),
        persona, since, persona, since,
    )  # fmt: skip
    return sum(int(row["n"] or 0) for row in rows)
