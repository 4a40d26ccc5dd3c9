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
from toolgate.kits.web.answers import Json
from toolgate.kits.web.auth import Anyone, Identity
from toolgate.kits.web.site import Here, Site
from toolgate.storage.port import Filter, Row

router = APIRouter(tags=["record"])
MOST_EVENTS = 1000
Word = Annotated[str, Query(max_length=256)]


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
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 50,
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
    # a number is an event's; ids never are
    rows = [] if number is not None and number < 1 else await _rows(here, ident)
    seen = [row for row in rows if not who.only or row.persona == who.only]
    if not seen or (number is not None and number not in {row.seq for row in seen}):
        raise NotFound(f"nothing in the ledger is about {ident[:80]}", "/api/v1/events lists events")
    body: dict[str, Any] = {
        "life": [shapes.event(row) for row in seen],
        "proof": [shapes.proof(here.gate, row, sealed=who.human) for row in seen],
    }
    if number is not None:
        body["event"] = shapes.event(next(row for row in seen if row.seq == number))
    return Json(body)


async def _rows(here: Site, ident: str) -> list[Row]:
    try:
        return await here.gate.life(ident)
    except NotFound:
        return []


@router.get("/stats", summary="Calls, success, time and errors by persona and period")
async def stats(here: Here, who: Anyone, period: Word = "1day", persona: Word = "") -> Json:
    return Json(await here.gate.stats(period, who.only or persona))


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
