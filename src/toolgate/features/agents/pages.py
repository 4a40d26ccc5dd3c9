"""Console pages of agents: runs with what they said, called and cost, plans, and rooms with board and timeline."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.agents import room as rules
from toolgate.core.errors import CallError
from toolgate.core.names import HUMAN
from toolgate.features.agents.runs import Runs
from toolgate.features.agents.view import cost, money, spelled
from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages

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
    async def runs(request: Request, who: Human) -> Response:
        found = await _agents(console).store.newest(NEWEST)
        plans = await _agents(console).plans.find(limit=20)
        usd = sum(run.spent.get("usd", 0) for run in found if not run.parent)
        tokens = sum(run.spent.get("tokens", 0) for run in found if not run.parent)
        return await console.page(
            request, who, "agents/runs.html", under="/runs", runs=found, plans=plans, usd=usd, tokens=tokens,
            now=console.now, meanings=MEANINGS, cost=cost, money=money,
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
            now=console.now, meanings=MEANINGS, cost=cost, money=money, spelled=spelled,
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
            trouble=trouble,
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
