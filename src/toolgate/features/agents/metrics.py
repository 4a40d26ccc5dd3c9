"""Success metrics of agents, from the record alone: adoption, depth, success, time, limits, violations, accuracy.

Seven have a target; five more describe how agents work. What cannot be measured yet is None, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from statistics import mean, median
from typing import TYPE_CHECKING, Annotated, Any, Literal

from toolgate.core.annotations import Field
from toolgate.core.clock import SECOND, iso
from toolgate.core.context import Context
from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.core.names import HUMAN
from toolgate.core.tool import Tool, tool
from toolgate.features.agents.runs import Runs, same_user
from toolgate.ledger.state import parsed
from toolgate.ledger.stats import PERIODS
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext

MOST_RUNS = 5000
"""The newest ones of a period are looked at."""
VIOLATIONS = ("outside_mount", "blocked_path")
_REFUSALS = ("denied", "limited", "rejected", "refused", "flood")

TARGETS: Mapping[str, tuple[str, str, float]] = {
    "adoption": ("answers that used tools", ">", 0.5),
    "depth": ("calls per run that used tools", ">=", 3),
    "accuracy": ("diagnoses that a human found right", ">", 0.7),
    "success_rate": ("calls that worked", ">", 0.9),
    "response_ms": ("milliseconds per call", "<", 2000),
    "limit_hits": ("calls that a limit refused", "<", 0.05),
    "violations": ("paths outside that were reached", "<=", 0),
}
_SHARES = frozenset({"adoption", "accuracy", "success_rate", "limit_hits"})


def in_words(name: str, value: float) -> str:
    return f"{value:.1%}" if name in _SHARES else f"{value:g}"


def target_in_words(name: str) -> str:
    _, sign, target = TARGETS[name]
    return f"{sign} {target:.0%}" if name in _SHARES else f"{sign} {target:g}"


class AgentMetrics:
    def __init__(self, context: FeatureContext) -> None:
        self._context, self._gate = context, context.gate

    async def measure(self, period: str = "1week", persona: str = "", who: str = HUMAN) -> dict[str, Any]:
        """All of them for a period, of everybody or of one persona, as far as `who` may see: of its own user's."""
        if period not in PERIODS:
            raise InvalidArgs(f"{period[:40]!r} is not a period", f"use one of: {', '.join(PERIODS)}")
        since = self._gate.now - PERIODS[period] * SECOND if PERIODS[period] else 0
        if persona and not same_user(self._gate, who, persona):
            raise NotFound(
                f"there is no persona {persona[:80]!r} of your user", "leave `persona` out for all"
            )
        calls = await self._calls(period, since, persona, who)
        runs = await self._runs(since, persona, who)
        rooms = await self._rooms(since, persona, who)
        agents: Runs = self._gate.feature("agents")
        mine = (
            None if who == HUMAN else [name for name in self._gate.policy.personas if self._shown(who, name)]
        )
        used = [run for run in runs if run["calls"]]
        judged = [room for room in rooms if room["verdict"]]
        values: dict[str, tuple[float | None, int]] = {
            "adoption": (_share(len(used), len(runs)), len(runs)),
            "depth": (round(mean(run["calls"] for run in used), 2) if used else None, len(used)),
            "accuracy": (_share(sum(room["verdict"] == "right" for room in judged), len(judged)), len(judged)),
            "success_rate": (_share(calls["ok"], calls["made"]), calls["made"]),
            "response_ms": (round(calls["ms"] / calls["made"], 3) if calls["made"] else None, calls["made"]),
            "limit_hits": (_share(calls["limited"], calls["made"] + calls["refused"]), calls["made"] + calls["refused"]),
            "violations": (0, calls["violations"]),
        }  # fmt: skip
        return {
            "period": period, "since": iso(since) if since else None, "persona": persona,
            "metrics": [_line(name, *values[name]) for name in TARGETS],
            "attempted_violations": calls["violations"],
            "work": _work(runs, rooms),
            "tools": await agents.effectiveness.sums(since, [persona] if persona else mine),
        }  # fmt: skip

    def _shown(self, who: str, owner: str) -> bool:
        return who == HUMAN or (owner in self._gate.policy.personas and same_user(self._gate, who, owner))

    async def _calls(self, period: str, since: int, persona: str, who: str) -> dict[str, Any]:
        found = {"made": 0, "ok": 0, "ms": 0.0, "refused": 0, "limited": 0, "violations": 0}
        for one in (await self._gate.stats(period, persona))["personas"]:
            if not self._shown(who, one["persona"]):
                continue
            found["made"] += one["calls"]
            found["ok"] += round((one["success_rate"] or 0) * one["calls"])
            found["ms"] += (one["avg_ms"] or 0) * one["calls"]
            found["refused"] += one["refused"]
        after = 0
        wanted = {"since": since, "persona": persona, "kinds": _REFUSALS, "limit": 1000}
        while rows := await self._gate.events(Filter(after=after, **wanted)):  # type: ignore[arg-type]
            for row in rows:
                if not self._shown(who, row.persona):
                    continue
                body = parsed(row)
                count = int(body.get("count", 1)) if row.kind == "flood" else 1
                found["limited"] += (
                    count if row.kind == "limited" or body.get("code") == "rate_limited" else 0
                )
                found["violations"] += count if body.get("code") in VIOLATIONS else 0
            after = rows[-1].seq
        return found

    async def _runs(self, since: int, persona: str, who: str) -> list[dict[str, Any]]:
        """Every run with what it called, from the steps that were recorded."""
        tables = await self._context.tables()
        only = " AND persona = ?" if persona else ""
        rows = await tables.fetch(
            f"SELECT id, persona, state, answer, created_at, updated_at FROM agent_runs WHERE created_at >= ?{only} "
            f"AND state NOT IN ('running', 'waiting') ORDER BY created_at DESC LIMIT {MOST_RUNS}",
            since, *([persona] if persona else []),
        )  # fmt: skip
        made = []
        for row in rows:
            if not self._shown(who, row["persona"]):
                continue
            steps = await tables.fetch(
                "SELECT kind, body FROM agent_steps WHERE run = ? ORDER BY number", row["id"]
            )
            made.append(_run(row, [(step["kind"], json.loads(step["body"])) for step in steps]))
        return made

    async def _rooms(self, since: int, persona: str, who: str) -> list[dict[str, Any]]:
        tables = await self._context.tables()
        rooms = await tables.fetch(
            "SELECT id, members, verdict FROM agent_rooms WHERE created_at >= ?", since
        )
        kept = []
        for room in rooms:
            members = json.loads(room["members"])
            if persona in ("", *members) and all(self._shown(who, one) for one in members):
                kept.append(dict(room))
        for room in kept:
            posts = await tables.fetch(
                "SELECT persona, kind, body FROM agent_posts WHERE room = ? ORDER BY number", room["id"]
            )
            room["posts"] = [(post["persona"], post["kind"], json.loads(post["body"])) for post in posts]
        return kept


def _run(row: Mapping[str, Any], steps: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    asked: list[tuple[str, str]] = []
    results: list[bool] = []
    for kind, body in steps:
        if kind == "reply":
            asked += [(call["name"], str(call["args"].get("path", ""))) for call in body.get("calls", ())]
        elif kind == "result":
            results.append(bool(body["ok"]))
    return {
        "answer": row["answer"], "state": row["state"], "calls": len(results), "asked": asked,
        "seconds": (row["updated_at"] - row["created_at"]) / SECOND,
    }  # fmt: skip


def _line(name: str, value: float | None, of: int) -> dict[str, Any]:
    what, sign, target = TARGETS[name]
    met = None
    if value is not None:
        met = {">": value > target, ">=": value >= target, "<": value < target, "<=": value <= target}[sign]
    return {"name": name, "value": value, "of": of, "what": what, "target": f"{sign} {target:g}", "met": met}


def _work(runs: list[dict[str, Any]], rooms: list[dict[str, Any]]) -> dict[str, Any]:
    """The five that say how agents work."""
    done = [run for run in runs if run["state"] == "done" and run["answer"]]
    looked = [run for run in done if any(path for _, path in run["asked"])]
    claims = [claim for room in rooms for _, _, body in room["posts"] for claim in body.get("claims", ())]
    said = [
        (who, body)
        for room in rooms
        for who, kind, body in room["posts"]
        if kind == "message" and who != "human"
    ]
    with_tools = [run["seconds"] for run in done if run["calls"]]
    without = [run["seconds"] for run in done if not run["calls"]]
    useful = sum(_named(run["answer"], path) for run in looked for _, path in run["asked"] if path)
    return {
        "code_understanding": _share(sum(any(_named(run["answer"], path) for _, path in run["asked"] if path) for run in looked), len(looked)),
        "hypothesis_verification": _share(sum(claim.get("event") is not None for claim in claims), len(claims)),
        "collaboration": _share(sum(bool(body.get("supports") or body.get("contradicts") or body.get("next")) for _, body in said), len(said)),
        "problem_solving_s": {"with_tools": _median(with_tools), "without": _median(without)},
        "tool_efficiency": _share(useful, sum(bool(path) for run in looked for _, path in run["asked"])),
    }  # fmt: skip


def _named(answer: str, path: str) -> bool:
    return path.rpartition("/")[2].removeprefix("project:") in answer


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _median(values: list[float]) -> float | None:
    return round(median(values), 3) if values else None


def tools(context: FeatureContext) -> list[Tool]:
    metrics = AgentMetrics(context)

    @tool("ai.metrics", reads=["ledger"])
    async def ai_metrics(
        ctx: Context,
        period: Annotated[
            Literal["1hour", "1day", "1week", "1month", "all"], Field(description="How far back.")
        ] = "1week",
        persona: Annotated[str, Field(max_length=64, description="Only this persona; empty: all.")] = "",
    ) -> dict[str, Any]:
        """How well agents of your user do, from the record: adoption, depth, accuracy, success rate, response time, limit hits,
        violations, each with its target; and which tools led to answers."""
        return await metrics.measure(period, persona, ctx.persona)

    return [ai_metrics]
