"""HTTP routes of the traces: programs that were run, and their numbers. A persona sees its own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from toolgate.kits.web.answers import Json
from toolgate.kits.web.auth import Anyone, Routes, anyone
from toolgate.kits.web.site import Here
from toolgate.ledger.traces import as_execution, days_of
from toolgate.storage.executions import Executions

router = APIRouter(tags=["record"])
Word = Annotated[str, Query(max_length=256)]
Number = Annotated[int, Query(ge=0, le=2**62)]


def routes() -> Routes:
    return [(router, anyone)]


@router.get("/executions", summary="Programs that were run, newest first, page by page")
async def executions(
    here: Here,
    who: Anyone,
    persona: Word = "",
    conversation: Word = "",
    call: Word = "",
    category: Word = "",
    success: bool | None = None,
    cursor: Number = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Json:
    """`next` is the cursor of the next page, null on the last one."""
    if who.only and persona not in ("", who.only):
        return Json({"executions": [], "next": None})  # a persona sees its own only
    wanted = Executions(
        before=cursor, persona=who.only or persona, session_id=conversation, call=call, error_category=category,
        success=success, limit=limit + 1,
    )  # fmt: skip
    rows = await here.gate.traces.find(wanted)
    page = rows[:limit]
    following = page[-1].seq if len(rows) > limit else None
    return Json({"executions": [as_execution(row) for row in page], "next": following})


@router.get(
    "/executions/summary", summary="Programs by period: success, time, errors by category with examples"
)
async def execution_summary(here: Here, who: Anyone, period: Word = "7days", persona: Word = "") -> Json:
    found = await here.gate.traces.summary(days_of(period), who.only or persona)
    return Json({"period": period} | found)
