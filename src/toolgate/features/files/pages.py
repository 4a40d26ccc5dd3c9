"""Console pages of undo: what taking a call back would do, and doing it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages


def add(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    @router.get("/undo/{ident}")
    async def undo_preview(request: Request, who: Human, ident: str) -> Response:
        """What taking it back would do. Nothing is touched and nothing recorded."""
        planned = await gate.undo(ident, preview=True)
        text = planned.data.get("diff", "") if planned.ok else ""
        files = (await console.diff(text)).files if text else ()
        return await console.page(
            request,
            who,
            "files/undo.html",
            under="/activity",
            ident=ident,
            planned=planned,
            files=files,
            text=text,
        )

    @router.post("/undo/{ident}")
    async def undo(request: Request, who: Human, ident: str) -> Response:
        reason = (await form(request)).get("reason", "")[:4000].strip()
        done = await gate.undo(ident, reason=reason, wait=False)
        if not done.ok:
            return await console.page(
                request,
                who,
                "files/undo.html",
                under="/activity",
                ident=ident,
                planned=done,
                files=(),
                text="",
            )
        return console.to(f"/events/{done.meta.event_id or ident}")
