"""Analytics per persona and period: calls, success, time, tools, errors.

Whole blocks of events are summed up once and kept in the table `sums`, a cache beside the journal: whoever reads it
checks that the block still ends with the event it was made of, and counts what is not kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import InvalidArgs
from toolgate.core.records import dataclass, field
from toolgate.storage.port import Backend, Filter, Row, Sum
from toolgate.storage.schema import BLOCK, AttachedBytes, Grown

PERIODS = {"1hour": 3600, "1day": 86400, "1week": 7 * 86400, "1month": 30 * 86400, "all": 0}
_KINDS = ("committed", "failed", "unknown", "denied", "limited", "rejected", "refused", "flood")


@dataclass
class UsageTally:
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

    def join(self, other: UsageTally) -> None:
        self.calls += other.calls
        self.ok += other.ok
        self.refused += other.refused
        self.micros += other.micros
        self.tokens += other.tokens
        self.errors.update(other.errors)

    def summary(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "success_rate": round(self.ok / self.calls, 4) if self.calls else None,
            "avg_ms": round(self.micros / self.calls / 1000, 3) if self.calls else None,
            "refused": self.refused,
            "tokens": self.tokens,
        }


Tallies = dict[str, dict[str, UsageTally]]
"""By persona and tool."""


async def usage(backend: Backend, period: str, persona: str, now: int) -> dict[str, Any]:
    if period not in PERIODS:
        raise InvalidArgs(f"{period!r} is not a period", f"use one of: {', '.join(PERIODS)}")
    since = now - PERIODS[period] * SECOND if PERIODS[period] else 0
    personas = await tallies(backend, since)
    adapted: dict[str, dict[str, Any]] = {}
    for row in await backend.rows(Filter(kinds=("adapted",), persona=persona, newest_first=True, limit=200)):
        adapted.setdefault(row.persona, {**orjson.loads(row.body), "event": row.seq, "at": iso(row.at)})
    return {
        "period": period,
        "since": iso(since) if since else None,
        "personas": [
            _persona(name, tools) | ({"adapted": adapted[name]} if name in adapted else {})
            for name, tools in sorted(personas.items())
            if persona in ("", name)
        ],
    }


async def tallies(backend: Backend, since: int) -> Tallies:
    """What happened since: from the kept sums of whole blocks of events, and from the rows around them."""
    head = (await backend.head()).seq
    first = 1
    if since:
        rows = await backend.rows(Filter(since=since, limit=1))
        first = rows[0].seq if rows else head + 1
    whole = range(-(-(first - 1) // BLOCK), head // BLOCK)  # the blocks that lie between
    if not whole:
        return await _counted(backend, first, head)
    found = await _counted(backend, first, whole.start * BLOCK)
    kept = {block.number: block for block in await backend.sums(whole.start, whole.stop)}
    fresh = []
    for number in whole:
        block = kept.get(number)
        if block is None:
            counted = await _counted(backend, number * BLOCK + 1, (number + 1) * BLOCK)
            last = await backend.rows(Filter(after=(number + 1) * BLOCK - 1, limit=1))
            fresh.append(Sum(number, last[0].hash, _written(counted)))
            _join(found, counted)
        else:
            _join(found, _read(block.body))
    if fresh:
        await backend.keep_sums(fresh)
    _join(found, await _counted(backend, whole.stop * BLOCK + 1, head))
    return found


async def _counted(backend: Backend, first: int, last: int) -> Tallies:
    """From the rows themselves."""
    found: Tallies = {}
    after = first - 1
    while after < last and (
        rows := await backend.rows(Filter(after=after, before=last + 1, kinds=_KINDS, limit=BLOCK))
    ):
        for row in rows:
            tools = found.setdefault(row.persona, {})
            tally = tools.get(row.tool)
            if tally is None:
                tally = tools[row.tool] = UsageTally()
            tally.add(row, orjson.loads(row.body))
        after = rows[-1].seq
    return found


def _join(into: Tallies, more: Tallies) -> None:
    for persona, tools in more.items():
        for tool, tally in tools.items():
            into.setdefault(persona, {}).setdefault(tool, UsageTally()).join(tally)


def _written(tallies: Tallies) -> str:
    return json.dumps(
        [
            [persona, tool, one.calls, one.ok, one.refused, one.micros, one.tokens, one.errors]
            for persona, tools in tallies.items()
            for tool, one in tools.items()
        ]
    )


def _read(body: str) -> Tallies:
    found: Tallies = {}
    for persona, tool, calls, ok, refused, micros, tokens, errors in orjson.loads(body):
        tally = UsageTally(calls, ok, refused, micros, tokens, Counter(errors))
        found.setdefault(persona, {})[tool] = tally
    return found


def _persona(name: str, tools: dict[str, UsageTally]) -> dict[str, Any]:
    total = UsageTally()
    for tally in tools.values():
        total.join(tally)
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


async def growth(backend: Backend, period: str, now: int, persona: str = "") -> dict[str, Any]:
    """How the ledger grows: bytes per persona and period, what is kept beside it, how large all of it is."""
    seconds = PERIODS[period]
    grown = await backend.grown(now - seconds * SECOND if seconds else 0)
    kept = await backend.attachments()
    days = seconds / 86400 if seconds else 0

    def told(found: Sequence[Grown | AttachedBytes]) -> list[dict[str, Any]]:
        wanted = [one for one in found if persona in ("", one.persona)]
        return [{"persona": one.persona, "events": one.events, "bytes": one.size} for one in wanted]

    personas = told(grown)
    return {
        "database_bytes": await backend.size(),
        "bytes": sum(one["bytes"] for one in personas),
        "personas": [
            one | ({"bytes_per_day": round(one["bytes"] / days)} if days else {}) for one in personas
        ],
        "kept": told(kept),
    }
