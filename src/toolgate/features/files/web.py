"""HTTP routes of undo and artifacts, the human's alone; and the console's pages of undo: what it would do, and doing it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from toolgate.core.result import Result
from toolgate.kits.web.answers import Json, Measured, Why, result
from toolgate.kits.web.auth import Human, Routes, form, human
from toolgate.kits.web.pages import Pages
from toolgate.kits.web.site import Here

router = APIRouter(tags=["humans decide"], route_class=Measured)
EventNumber = Annotated[int, Path(ge=1, le=2**62)]


def routes() -> Routes:
    return [(router, human)]


class Undo(BaseModel):
    """These events or calls, all of a conversation, or all since a moment (`10m`, `2h`, ISO 8601, an event)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    events: Annotated[list[int | str], Field(max_length=1000)] = Field(default_factory=list)
    conversation: Annotated[str, Field(max_length=256)] = ""
    since: Annotated[str, Field(max_length=256)] = ""
    preview: bool = False
    reason: Annotated[str, Field(max_length=4000)] = ""


@router.get("/undo/{event}", summary="What taking back an event would do")
async def undo_preview(here: Here, event: EventNumber) -> Json:
    """A Result with the calls, the files and the diff. Nothing is touched and nothing recorded."""
    return result(await here.gate.undo(event, preview=True))


@router.post("/undo/{event}", summary="Take back what an event did")
async def undo(here: Here, event: EventNumber, why: Why | None = None) -> Json:
    """A Result: an undo is a recorded call, and can be undone itself."""
    return result(await here.gate.undo(event, reason=why.reason if why else "", wait=False))


@router.post("/undo", summary="Take back what several calls did, as one")
async def undo_several(here: Here, asked: Undo) -> Json:
    """All files or none. With `preview` nothing is touched and nothing recorded."""
    return result(
        await here.gate.undo(
            *asked.events, conversation=asked.conversation, since=asked.since, preview=asked.preview,
            reason=asked.reason, wait=False,
        )
    )  # fmt: skip


@router.get("/artifacts", summary="The files that calls changed, and whether they are still so")
async def artifacts(
    here: Here,
    conversation: Annotated[str, Query(max_length=256)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Json:
    return Json(await here.gate.artifacts(conversation, limit))


def add(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    async def page(request: Request, who: Human, ident: str, planned: Result, text: str = "") -> Response:
        files = (await console.diff(text)).files if text else ()
        return await console.page(
            request, who, "files/undo.html", under="/activity", ident=ident, planned=planned, files=files, text=text
        )  # fmt: skip

    @router.get("/undo/{ident}")
    async def undo_preview(request: Request, who: Human, ident: str) -> Response:
        """What taking it back would do. Nothing is touched and nothing recorded."""
        planned = await gate.undo(ident, preview=True)
        return await page(request, who, ident, planned, planned.data.get("diff", "") if planned.ok else "")

    @router.post("/undo/{ident}")
    async def undo(request: Request, who: Human, ident: str) -> Response:
        reason = (await form(request)).get("reason", "")[:4000].strip()
        done = await gate.undo(ident, reason=reason, wait=False)
        if not done.ok:
            return await page(request, who, ident, done)
        return console.to(f"/events/{done.meta.event_id or ident}")
