"""Analytics per persona and period: calls, success, time, tools, errors."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import InvalidArgs
from toolgate.storage.port import Backend, Filter, Row

PERIODS = {"1hour": 3600, "1day": 86400, "1week": 7 * 86400, "1month": 30 * 86400, "all": 0}
_KINDS = ("committed", "failed", "unknown", "denied", "limited", "rejected", "refused", "flood")
_BATCH = 20_000


@dataclass
class Tally:
    calls: int = 0
    ok: int = 0
    refused: int = 0
    micros: int = 0
    tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, body: dict[str, Any]) -> None:
        if row.kind == "flood":
            self.refused += body["count"]
        elif row.kind in ("denied", "limited", "rejected", "refused"):
            self.refused += 1
            self.errors[_cause(row, body)] += 1
        else:
            self.calls += 1
            self.ok += row.kind == "committed"
            self.micros += body.get("duration_us", 0)
            self.tokens += body.get("tokens", 0)
            if row.kind != "committed":
                self.errors[_cause(row, body)] += 1

    def summary(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "success_rate": round(self.ok / self.calls, 4) if self.calls else None,
            "avg_ms": round(self.micros / self.calls / 1000, 3) if self.calls else None,
            "refused": self.refused,
            "tokens": self.tokens,
        }


async def usage(backend: Backend, period: str, persona: str, now: int) -> dict[str, Any]:
    if period not in PERIODS:
        raise InvalidArgs(f"{period!r} is not a period", f"use one of: {', '.join(PERIODS)}")
    since = now - PERIODS[period] * SECOND if PERIODS[period] else 0
    personas: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    after = 0
    while rows := await backend.rows(
        Filter(after=after, since=since, persona=persona, kinds=_KINDS, limit=_BATCH)
    ):
        for row in rows:
            personas[row.persona][row.tool].add(row, json.loads(row.body))
        after = rows[-1].seq
    return {
        "period": period,
        "since": iso(since) if since else None,
        "personas": [_persona(name, tools) for name, tools in sorted(personas.items())],
    }


def _persona(name: str, tools: dict[str, Tally]) -> dict[str, Any]:
    total = Tally()
    for tally in tools.values():
        total.calls += tally.calls
        total.ok += tally.ok
        total.refused += tally.refused
        total.micros += tally.micros
        total.tokens += tally.tokens
    called = [(tool, tally) for tool, tally in tools.items() if tally.calls]
    top = sorted(called, key=lambda pair: (-pair[1].calls, pair[0]))[:10]
    errors = [
        {"tool": tool, "error": error, "count": count}
        for tool, tally in sorted(tools.items())
        for error, count in tally.errors.most_common(5)
    ]
    return {
        "persona": name,
        **total.summary(),
        "top_tools": [
            {"tool": tool, "count": tally.calls, "avg_ms": tally.summary()["avg_ms"]} for tool, tally in top
        ],
        "errors": sorted(errors, key=lambda entry: -int(str(entry["count"])))[:10],
        "breakdown": {tool: tally.summary() for tool, tally in sorted(tools.items()) if tool},
    }


def _cause(row: Row, body: dict[str, Any]) -> str:
    """A short name to count by: codes and rules, not messages that differ each time."""
    if row.kind == "denied":
        return f"denied by {body.get('rule', '?')}"
    if row.kind == "limited":
        return f"limited by {body.get('limit', '?')}"
    if row.kind == "refused":
        return "refused by a human"
    return str(body.get("code", row.kind))
