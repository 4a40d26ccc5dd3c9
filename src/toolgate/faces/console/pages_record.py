"""What happened: the feed, the ledger, one event in full, and taking it back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.core.event import BY_KIND
from toolgate.faces.console.activity import Query as Wanted
from toolgate.faces.console.activity import feed
from toolgate.faces.console.call_timeline import life
from toolgate.faces.console.calls import events
from toolgate.faces.console.console import Console, is_part
from toolgate.faces.console.question import drawn
from toolgate.faces.http.auth import Human, form
from toolgate.kits import diffs
from toolgate.storage.port import Filter

PAGE = 100
Whole = Annotated[bool, Query(alias="all")]
Word = Annotated[str, Query(max_length=400)]
Number = Annotated[int, Query(ge=0, le=2**62)]


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/activity")
    async def activity(
        request: Request, who: Human, q: Word = "", before: Number = 0, persona: Word = ""
    ) -> Response:
        query = Wanted.read(f"{q} persona:{persona}" if persona and "persona:" not in q else q)
        found = await feed(gate, query, before)
        data: dict[str, Any] = {"feed": found, "q": q, "before": before, "persona": persona}
        if is_part(request):
            return await console.part(who, "part_feed.html", **data)
        return await console.page(request, who, "activity.html", **data)

    @pages.get("/ledger")
    async def ledger(
        request: Request, who: Human, kind: Word = "", before: Number = 0, persona: Word = ""
    ) -> Response:
        kinds = (kind,) if kind in BY_KIND else ()
        rows = await gate.events(
            Filter(kinds=kinds, before=before, persona=persona, newest_first=True, limit=PAGE + 1)
        )
        lines = await events(gate, rows[:PAGE])
        more = rows[PAGE - 1].seq if len(rows) > PAGE else 0
        return await console.page(
            request, who, "ledger.html", lines=lines, kinds=list(BY_KIND), kind=kind, more=more, before=before
        )

    @pages.post("/ledger/verify")
    async def verify(request: Request, who: Human) -> Response:
        await console.verify()
        return console.to("/ledger")

    @pages.get("/events/{ident}")
    async def event(request: Request, who: Human, ident: str, whole: Whole = False) -> Response:
        found = await life(gate, ident, console.painter, whole=whole)
        if is_part(request):
            return await console.part(who, "part_life.html", life=found)
        return await console.page(request, who, "event.html", life=found)

    @pages.get("/undo/{ident}")
    async def undo_preview(request: Request, who: Human, ident: str) -> Response:
        """What taking it back would do. Nothing is touched and nothing recorded."""
        planned = await gate.undo(ident, preview=True)
        text = planned.data.get("diff", "") if planned.ok else ""
        files = await drawn(diffs.parse(text), console.painter)
        return await console.page(
            request, who, "undo.html", ident=ident, planned=planned, files=files, text=text
        )

    @pages.post("/undo/{ident}")
    async def undo(request: Request, who: Human, ident: str) -> Response:
        reason = (await form(request)).get("reason", "")[:4000].strip()
        done = await gate.undo(ident, reason=reason, wait=False)
        if not done.ok:
            return await console.page(request, who, "undo.html", ident=ident, planned=done, files=[], text="")
        return console.to(f"/events/{done.meta.event_id or ident}")
