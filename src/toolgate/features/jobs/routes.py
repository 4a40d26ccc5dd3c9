"""HTTP routes of jobs: a persona sees its own; cancelling is the human's."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from toolgate.kits.web.answers import Json, Measured
from toolgate.kits.web.auth import Anyone, Routes, anyone, human
from toolgate.kits.web.site import Here

router = APIRouter(tags=["jobs"], route_class=Measured)
human_router = APIRouter(tags=["jobs"], route_class=Measured)
Word = Annotated[str, Query(max_length=256)]


def routes() -> Routes:
    return [(router, anyone), (human_router, human)]


@router.get("/jobs", summary="The newest jobs: what, state, progress")
async def jobs(
    here: Here,
    who: Anyone,
    persona: Word = "",
    open_only: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Json:
    if who.only and persona not in ("", who.only):
        return Json({"jobs": []})  # a persona sees its own only
    found = await here.gate.jobs.find(who.only or persona, limit, open_only)
    return Json({"jobs": [job.shown(whole=False) for job in found]})


@router.get("/jobs/{ident}", summary="One job, with its result or error")
async def job(here: Here, who: Anyone, ident: str) -> Json:
    return Json((await here.gate.jobs.get(ident, who.only)).shown())


@human_router.post("/jobs/{ident}/cancel", summary="Cancel a job and the call it is making")
async def cancel(here: Here, ident: str) -> Json:
    return Json((await here.gate.jobs.cancel(ident)).shown(whole=False))
