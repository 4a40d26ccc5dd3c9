"""Console pages of agents: runs with what they said, called and cost, plans, rooms with board and timeline, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.agents import room as rules
from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import CallError
from toolgate.core.names import HUMAN
from toolgate.features.agents.metrics import AgentMetrics, in_words, target_in_words
from toolgate.features.agents.runs import Runs
from toolgate.features.agents.view import cost, paid, spelled, total
from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages
from toolgate.ledger.stats import PERIODS, Tallies, tallies
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.facade import Gate

MEANINGS = {
    "done": "allowed", "verified": "allowed", "running": "plain", "open": "plain", "waiting": "asks", "limit": "unknown",
    "unverified": "unknown", "undecided": "unknown", "disagreement": "asks", "budget": "refused", "stopped": "refused",
    "failed": "refused", "cancelled": "refused", "superseded": "plain",
}  # fmt: skip
NEWEST = 100
_POST: dict[str, Any] = {"text": "", "hypothesis": "", "claims": (), "event": None, "passed": False}
_CLAIM: dict[str, Any] = {"text": "", "event": None, "seen": "", "missing": ""}


def _agents(console: Pages) -> Runs:
    """Opened when a page is asked for, not with the server."""
    found: Runs = console.gate.feature("agents")
    return found


def add_runs(router: APIRouter, console: Pages) -> None:
    @router.get("/runs")
    async def runs(request: Request, who: Human, conversation: str = "") -> Response:
        """The newest, or what was asked and answered in one conversation."""
        found = await _agents(console).store.newest(NEWEST, conversation=conversation)
        plans = await _agents(console).plans.find(conversation=conversation, limit=20)
        return await console.page(
            request, who, "agents/runs.html", under="/runs", runs=found, plans=plans, conversation=conversation,
            total=total(found), now=console.now, meanings=MEANINGS, paid=paid,
        )  # fmt: skip

    @router.get("/runs/{ident}")
    async def run(request: Request, who: Human, ident: str) -> Response:
        found = await _agents(console).store.get(ident)
        steps = await _agents(console).store.steps(ident)
        helpers = [one for one in await _agents(console).store.family(found.root) if one.parent == ident]
        plans = [
            one
            for one in await _agents(console).plans.find(conversation=found.conversation)
            if one["run"] == ident
        ]
        return await console.page(
            request, who, "agents/run.html", under="/runs", run=found, steps=steps, helpers=helpers, plans=plans,
            now=console.now, meanings=MEANINGS, cost=cost, spelled=spelled, paid=paid,
        )  # fmt: skip


def add_rooms(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    @router.get("/rooms")
    async def rooms(request: Request, who: Human) -> Response:
        found = await _agents(console).rooms.newest(NEWEST)
        return await console.page(
            request, who, "agents/rooms.html", under="/rooms", rooms=found, now=console.now, meanings=MEANINGS
        )

    @router.get("/rooms/{ident}")
    async def room(request: Request, who: Human, ident: str) -> Response:
        return await shown(request, who, ident)

    async def shown(
        request: Request, who: Human, ident: str, trouble: Any = None, status: int = 200
    ) -> Response:
        found = await _agents(console).rooms.get(ident)
        posts = await _agents(console).rooms.posts(ident)
        listed = [
            _POST | post | {"claims": [_CLAIM | one for one in post.get("claims", ())]} for post in posts
        ]
        turns = await _agents(console).store.newest(NEWEST, room=ident)
        return await console.page(
            request, who, "agents/room.html", under="/rooms", status=status, room=found, posts=listed,
            board=rules.board(posts), turns=list(reversed(turns)), now=console.now, meanings=MEANINGS, cost=cost,
            total=total(turns), trouble=trouble,
        )  # fmt: skip

    @router.post("/rooms/{ident}/say")
    async def say(request: Request, who: Human, ident: str) -> Response:
        """The human speaks by a call like any other."""
        text = (await form(request)).get("text", "")
        done = await gate.call("room.post", {"text": text, "room": ident}, persona=HUMAN)
        if done.ok:
            return console.to(f"/rooms/{ident}")
        return await shown(request, who, ident, done.error, 409)

    @router.post("/rooms/{ident}/judge")
    async def judge(request: Request, who: Human, ident: str) -> Response:
        try:
            await _agents(console).rooms.judge(
                ident, (await form(request)).get("verdict", ""), f"human in {who.channel}"
            )
        except CallError as error:
            return await shown(request, who, ident, error, 409)
        return console.to(f"/rooms/{ident}")


# --- the success metrics --------------------------------------------------------------------------------------

BARS = 12
WIDE, HIGH, GAP = 720, 160, 8
PERIOD_NAMES = {
    "1hour": "an hour",
    "1day": "a day",
    "1week": "a week",
    "1month": "a month",
    "all": "everything",
}


class Bar(NamedTuple):
    """What happened in a stretch of time, and where it is drawn."""

    since: str
    worked: int
    failed: int
    refused: int

    @property
    def total(self) -> int:
        return self.worked + self.failed + self.refused


class Rect(NamedTuple):
    kind: str
    x: float
    y: float
    width: float
    height: float


class Plot(NamedTuple):
    bars: list[Bar]
    rects: list[Rect]
    most: int

    @property
    def told(self) -> str:
        """For whoever does not see it."""
        worked, failed = sum(bar.worked for bar in self.bars), sum(bar.failed for bar in self.bars)
        refused = sum(bar.refused for bar in self.bars)
        return f"{worked + failed + refused} calls: {worked} worked, {failed} failed, {refused} refused; at most {self.most} in one bar"


def add_metrics(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    @router.get("/metrics")
    async def metrics(request: Request, who: Human, period: str = "1week", persona: str = "") -> Response:
        period = period if period in PERIODS else "1week"
        persona = persona if persona in gate.policy.personas and persona != HUMAN else ""
        found = await AgentMetrics(gate.features["agents"]).measure(period, persona)
        raised = {name: await gate.earned(name) for name in gate.policy.earns}
        return await console.page(
            request, who, "agents/metrics.html", under="/runs", found=found, periods=PERIOD_NAMES, period=period,
            persona=persona, personas=[name for name in gate.policy.personas if name != HUMAN], shown=in_words, aimed=target_in_words,
            plot=await plot(gate, period, persona), wide=WIDE, high=HIGH, raised=raised,
        )  # fmt: skip


async def plot(gate: Gate, period: str, persona: str) -> Plot:
    """The calls of a period in bars of equal time, the oldest first."""
    backend = gate.services.ledger.backend
    since = gate.now - PERIODS[period] * SECOND
    if not PERIODS[period]:
        first = await backend.rows(Filter(limit=1))
        since = first[0].at if first else gate.now
    each = max((gate.now - since) // BARS, 1)
    sums = [_counted(await tallies(backend, since + index * each), persona) for index in range(BARS)]
    sums.append((0, 0, 0))
    bars = [
        Bar(iso(since + index * each), *(max(now - later, 0) for now, later in zip(*sums[index : index + 2], strict=True)))
        for index in range(BARS)
    ]  # fmt: skip
    return drawn(bars)


def _counted(found: Tallies, persona: str) -> tuple[int, int, int]:
    """Worked, failed, refused."""
    mine = [tally for name, tools in found.items() if persona in ("", name) for tally in tools.values()]
    worked, calls = sum(one.ok for one in mine), sum(one.calls for one in mine)
    return worked, calls - worked, sum(one.refused for one in mine)


def drawn(bars: list[Bar]) -> Plot:
    most = max((bar.total for bar in bars), default=0)
    rects: list[Rect] = []
    width = WIDE / max(len(bars), 1)
    for index, bar in enumerate(bars):
        below = float(HIGH)
        for kind, count in (("worked", bar.worked), ("failed", bar.failed), ("refused", bar.refused)):
            height: Any = round(count / most * HIGH, 2) if most else 0.0
            if height:
                below -= height
                rects.append(Rect(kind, round(index * width + GAP / 2, 2), round(below, 2), round(width - GAP, 2), height))  # fmt: skip
    return Plot(bars, rects, most)
