"""Effectiveness of tools: which calls led to an answer, kept for each run that ended, and told to later runs.

A call led to the answer if a claim rests on its event, if the answer names the file that it was about, or if it showed a
file that the answer or a call that led there names. Failed calls lead nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgate.agents.prompt import experience
from toolgate.core.clock import SECOND
from toolgate.gate.earned import credit
from toolgate.storage.tables import Statement

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext
    from toolgate.features.agents.store import AgentRun

DAY = 86_400 * SECOND
LOOKS_BACK = 30 * DAY
ENOUGH = 20
"""Calls of a tool before anything is said about it."""
OFTEN, SELDOM = 0.6, 0.1
_PATHS = ("path", "file", "file_path", "source", "from", "to")
_SHORTEST = 3


class MadeCall(NamedTuple):
    tool: str
    paths: tuple[str, ...]
    ok: bool
    text: str
    call: str
    event: int | None


def made_calls(steps: Iterable[Mapping[str, Any]]) -> list[MadeCall]:
    """The calls of a run in order, each with what it was about and what came of it."""
    asked: dict[tuple[int, int], Mapping[str, Any]] = {}
    made = []
    for step in steps:
        body = step["body"]
        if step["kind"] == "reply":
            for index, call in enumerate(body.get("calls", ())):
                asked[body["turn"], index] = call["args"]
        elif step["kind"] == "result":
            args = asked.get((body["round"], body["index"]), {})
            paths = tuple(_plain(str(args[name])) for name in _PATHS if isinstance(args.get(name), str))
            made.append(
                MadeCall(body["tool"], paths, body["ok"], body["text"], body["call"], body.get("event"))
            )
    return made


def led(calls: Sequence[MadeCall], answer: str, claimed: Iterable[int] = ()) -> list[bool]:
    """For each call whether it led to the answer, judged from the end: what a call that led there was about counts too."""
    events, named = set(claimed), set()
    found = [False] * len(calls)
    for path in {path for one in calls for path in one.paths}:
        if _names(answer, path) or _names(answer, path.rpartition("/")[2]):
            named.add(path)
    for index in range(len(calls) - 1, -1, -1):
        one = calls[index]
        if one.ok and (
            (one.event is not None and one.event in events)
            or not named.isdisjoint(one.paths)
            or any(_names(one.text, path) for path in named)
        ):
            found[index] = True
            named.update(one.paths)
    return found


def _names(text: str, path: str) -> bool:
    if len(path) < _SHORTEST or path not in text:
        return False
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", text) is not None


def _plain(path: str) -> str:
    return path.removeprefix("project:").removeprefix("./")


class Effectiveness:
    def __init__(self, context: FeatureContext) -> None:
        self._context = context

    async def record(self, run: AgentRun, steps: Sequence[Mapping[str, Any]]) -> None:
        """What led to the answer of a run that has ended; the calls that did count for the persona's limits."""
        calls = made_calls(steps)
        if not calls:
            return
        found = led(calls, run.answer if run.state in ("done", "limit") else "", await self._claimed(run))
        sums: dict[str, list[int]] = {}
        for one, hit in zip(calls, found, strict=True):
            tally = sums.setdefault(one.tool, [0, 0])
            tally[0] += 1
            tally[1] += hit
        tables = await self._context.tables()
        await tables.transaction(
            [
                Statement(
                    "INSERT INTO agent_led (run, persona, tool, calls, led, at) VALUES (?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (run, tool) DO NOTHING",
                    (run.id, run.persona, tool, count, hits, self._context.gate.now),
                )
                for tool, (count, hits) in sums.items()
            ]
        )
        useful = [one.call for one, hit in zip(calls, found, strict=True) if hit and one.call]
        if useful and run.persona in self._context.gate.policy.earns:
            await credit(self._context.services.ledger, run.persona, useful, f"the answer of {run.id}")

    async def _claimed(self, run: AgentRun) -> set[int]:
        if not run.room:
            return set()
        posts = await self._context.gate.feature("agents").rooms.posts(run.room)
        return {claim["event"] for post in posts for claim in post.get("claims", ()) if claim.get("event")}

    async def sums(self, since: int, personas: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """By tool: calls of runs, and how many of them led to an answer; of these personas, or of all."""
        tables = await self._context.tables()
        rows = await tables.fetch(
            "SELECT persona, tool, SUM(calls) AS calls, SUM(led) AS led FROM agent_led WHERE at >= ? "
            "GROUP BY persona, tool",
            since,
        )
        wanted = None if personas is None else set(personas)
        found: dict[str, list[int]] = {}
        for row in rows:
            if wanted is None or row["persona"] in wanted:
                tally = found.setdefault(row["tool"], [0, 0])
                tally[0] += int(row["calls"])
                tally[1] += int(row["led"])
        listed = [
            {"tool": tool, "calls": count, "led_to_answer": round(hits / count, 4)}
            for tool, (count, hits) in found.items()
        ]
        return sorted(listed, key=lambda one: (-int(str(one["calls"])), str(one["tool"])))

    async def hint(self, persona: str, tools: Iterable[str]) -> str:
        """What is told to a run: of whole days only, so that the prompts of one day are the same to the byte."""
        gate = self._context.gate
        user = gate.user_of(persona)
        same = [name for name in gate.policy.personas if gate.user_of(name) == user]
        today = gate.now - gate.now % DAY
        known = set(tools)
        found = [
            one for one in await self._until(today, same) if one["tool"] in known and one["calls"] >= ENOUGH
        ]
        often = [one["tool"] for one in found if one["led"] >= OFTEN * one["calls"]]
        seldom = [one["tool"] for one in found if one["led"] <= SELDOM * one["calls"]]
        return experience(often, seldom)

    async def _until(self, until: int, personas: Sequence[str]) -> list[dict[str, Any]]:
        marks = ", ".join("?" * len(personas))
        tables = await self._context.tables()
        rows = await tables.fetch(
            f"SELECT tool, SUM(calls) AS calls, SUM(led) AS led FROM agent_led "
            f"WHERE at >= ? AND at < ? AND persona IN ({marks}) GROUP BY tool",
            until - LOOKS_BACK, until, *personas,
        )  # fmt: skip
        return [{"tool": row["tool"], "calls": int(row["calls"]), "led": int(row["led"])} for row in rows]
