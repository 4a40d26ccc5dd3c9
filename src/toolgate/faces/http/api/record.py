"""The record: events, the life of a call with its proof, numbers. A persona sees its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.faces.http import shapes
from toolgate.faces.http.api.stream import kinds_of
from toolgate.faces.http.auth import Anyone, Identity
from toolgate.faces.http.problems import Json
from toolgate.faces.http.site import Here, Site
from toolgate.ledger.traces import as_execution, days_of
from toolgate.project.record import Record
from toolgate.storage.executions import Executions
from toolgate.storage.port import Filter, Row

router = APIRouter(tags=["record"])
MOST = 1000
Word = Annotated[str, Query(max_length=256)]
Number = Annotated[int, Query(ge=0, le=2**62)]


@router.get("/events", summary="Events, filtered, page by page")
async def events(
    here: Here,
    who: Anyone,
    kind: Annotated[list[str], Query(description="Repeat, or separate with commas.")] = [],  # noqa: B006
    persona: Word = "",
    tool: Word = "",
    conversation: Word = "",
    call: Word = "",
    since: Annotated[str, Query(description="ISO 8601", max_length=40)] = "",
    until: Annotated[str, Query(description="ISO 8601", max_length=40)] = "",
    order: Literal["newest", "oldest"] = "newest",
    cursor: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
) -> Json:
    """`next` is the cursor of the next page, null on the last one."""
    if who.only and persona not in ("", who.only):
        return Json({"events": [], "next": None})  # a persona sees its own only
    newest = order == "newest"
    wanted = Filter(
        persona=who.only or persona,
        tool=tool,
        conversation=conversation,
        call=call,
        kinds=kinds_of(kind),
        since=_moment(since),
        until=_moment(until),
        newest_first=newest,
        limit=limit + 1,
    )
    rows = await here.gate.events(replace(wanted, before=cursor) if newest else replace(wanted, after=cursor))
    page = rows[:limit]
    return Json(
        {"events": [shapes.event(row) for row in page], "next": page[-1].seq if len(rows) > limit else None}
    )


@router.get("/events/{number}", summary="One event, the life of its call, its proof")
async def event(here: Here, who: Anyone, number: int) -> Json:
    return await _life(here, who, str(number), number)


@router.get("/calls/{ident}", summary="The life of a call, a question or a grant")
async def call(here: Here, who: Anyone, ident: str) -> Json:
    return await _life(here, who, ident)


async def _life(here: Site, who: Identity, ident: str, number: int | None = None) -> Json:
    ledger = here.gate.services.ledger
    # a number is an event's; ids never are
    rows = [] if number is not None and number < 1 else await _rows(here, ident)
    seen = [row for row in rows if not who.only or row.persona == who.only]
    if not seen or (number is not None and number not in {row.seq for row in seen}):
        raise NotFound(f"nothing in the ledger is about {ident[:80]}", "/api/v1/events lists events")
    keys = ledger.keys if who.human else None
    body: dict[str, Any] = {
        "life": [shapes.event(row) for row in seen],
        "proof": [shapes.proof(row, keys) for row in seen],
    }
    if number is not None:
        body["event"] = shapes.event(next(row for row in seen if row.seq == number))
    return Json(body)


async def _rows(here: Site, ident: str) -> list[Row]:
    ledger = here.gate.services.ledger
    try:
        return await Record(ledger.backend, ledger.keys, None, "").life(ident)
    except NotFound:
        return []


@router.get("/stats", summary="Calls, success, time and errors by persona and period")
async def stats(here: Here, who: Anyone, period: Word = "1day", persona: Word = "") -> Json:
    return Json(await here.gate.stats(period, who.only or persona))


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


def _moment(text: str) -> int:
    if not text:
        return 0
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgs(f"{text!r} is not a time", "write it as 2026-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise InvalidArgs(f"{text!r} has no time zone", "add Z for UTC")
    return max(0, round(found.timestamp() * SECOND))
