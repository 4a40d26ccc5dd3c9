"""The record: events, the life of a call with its proof, numbers; and events as they are recorded, as server-sent events. A
persona sees its own. A client that lost the connection says which event it saw last.

And for whoever watches the server: is it alive, can it work, what are its numbers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Code, InvalidArgs, NotFound
from toolgate.core.event import BY_KIND
from toolgate.facade import Gate
from toolgate.faces.http.site import HereServer, ServerSite
from toolgate.kits.web.answers import Json, problem
from toolgate.kits.web.auth import Anyone, Identity, still
from toolgate.kits.web.site import Here, Site
from toolgate.kits.words import event_as_data
from toolgate.ledger.chain import row_text
from toolgate.storage.port import Filter, Row

log = logging.getLogger("toolgate.http")
router = APIRouter(tags=["record"])
MOST_EVENTS = 1000
Word = Annotated[str, Query(max_length=256)]
MOST_IDS = 200
"""Open questions that a stream names; of more it says only how many there are."""
HEARTBEAT = 15.0
BATCH = 200
public_router = APIRouter(tags=["health"])
"""Without a token: they say yes or no and nothing else."""
health_router = APIRouter(tags=["health"])


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
        {"events": [event_as_data(row) for row in page], "next": page[-1].seq if len(rows) > limit else None}
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
        "life": [event_as_data(row) for row in seen],
        "proof": [_proof(here.gate, row, sealed=who.human) for row in seen],
    }
    if number is not None:
        body["event"] = event_as_data(next(row for row in seen if row.seq == number))
    return Json(body)


def _proof(gate: Gate, row: Row, *, sealed: bool) -> dict[str, Any]:
    """What anybody can recompute, and with `sealed` whether the seal is right."""
    fault = gate.fault(row, sealed=sealed)
    return {
        "text": row_text(row), "hash": row.hash, "prev": row.prev, "key": row.key,
        "seal_checked": sealed, "ok": not fault, "fault": fault,
    }  # fmt: skip


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


def kinds_of(given: Sequence[str]) -> tuple[str, ...]:
    named = tuple(kind for each in given for kind in each.split(",") if kind)
    for kind in named:
        if kind not in BY_KIND:
            raise InvalidArgs(f"there are no events of kind {kind[:40]!r}", f"use: {', '.join(BY_KIND)}")
    return named


@router.get(
    "/stream", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}}
)
async def stream(
    here: HereServer,
    who: Anyone,
    kind: Annotated[list[str], Query(description="Only these kinds; repeat, or separate with commas.")] = [],  # noqa: B006
    persona: Annotated[str, Query(description="Only this persona's; a persona gets its own anyway.")] = "",
    after: Annotated[
        int | None, Query(ge=0, description="Begin after this event; else with what is new.")
    ] = None,
    last_event_id: Annotated[str, Header(description="What a browser sends when it reconnects.")] = "",
) -> StreamingResponse:
    """Each event has its number as `id`, its kind as `event` and the row as `data`. An event `questions` says which
    questions are open, at first and whenever that changes. A comment every 15 s keeps the line open."""
    wanted = Filter(persona=who.only or persona, kinds=kinds_of(kind), limit=BATCH)
    feed = Feed(here, who, wanted, await _start(here, after, last_event_id))
    headers = {"X-Accel-Buffering": "no"}  # a proxy that collects would keep questions from their human
    return _CountedStream(feed, headers)


async def _start(here: ServerSite, after: int | None, last: str) -> int:
    head = await here.gate.head()
    if last:
        if not (last.isascii() and last.isdigit() and len(last) < 19):
            raise InvalidArgs(
                f"{last[:40]!r} is not an event's number", "send the id of the last event you saw"
            )
        return min(int(last), head)
    return head if after is None else min(after, head)


@dataclass
class Feed:
    site: ServerSite
    who: Identity
    wanted: Filter
    after: int

    async def frames(self) -> AsyncIterator[str]:
        with self.site.notifier.following():
            yield "retry: 2000\n\n"
            try:
                async for frame in self._follow():
                    yield frame
            except CallError as error:  # the client comes back and asks from where it was
                log.warning("a stream ended: %s", error.message)

    async def _follow(self) -> AsyncIterator[str]:
        told = ""
        while not self.site.closing.is_set() and still(self.site, self.who):
            news = self.site.notifier.news
            rows = await self.site.gate.events(replace(self.wanted, after=self.after))
            for row in rows:
                self.after = row.seq
                yield _frame(row.kind, _json(event_as_data(row)), row)
            open_now = await self._questions()
            if open_now != told:
                told = open_now
                yield _frame("questions", told)
            if not rows and not await self._wait(news):
                yield ": still here\n\n"

    async def _questions(self) -> str:
        """How many are open, and the ids of the first."""
        page = await self.site.gate.questions(MOST_IDS, persona=self.who.only)
        return _json({"open": page.total, "ids": [each.id for each in page.questions]})

    async def _wait(self, news: asyncio.Event) -> bool:
        """Until something may have happened; False when nothing did for a while."""
        tasks = [asyncio.create_task(news.wait()), asyncio.create_task(self.site.closing.wait())]
        try:
            done, _ = await asyncio.wait(tasks, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            for task in tasks:
                task.cancel()


class _CountedStream(StreamingResponse):
    """Holds one of its owner's places while it is sent, and none before: a response that is never sent would keep it."""

    def __init__(self, feed: Feed, headers: dict[str, str]) -> None:
        super().__init__(feed.frames(), media_type="text/event-stream", headers=headers)
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.site.places.stream(self._feed.who.name):
            await super().__call__(scope, receive, send)


def _json(value: Any) -> str:
    return json.dumps(value, default=str)  # ASCII: no line break of any alphabet ends a frame early


def _frame(name: str, data: str, row: Row | None = None) -> str:
    ident = f"id: {row.seq}\n" if row is not None else ""
    return f"{ident}event: {name}\ndata: {data}\n\n"


@public_router.get("/health/live", summary="Is the process alive")
async def live() -> Json:
    return Json({"ok": True})


@public_router.get("/health/ready", summary="Can calls be made: ledger open, policy readable")
async def ready(here: HereServer) -> Json:
    try:
        await here.gate.check_ready()
    except CallError:
        return problem(Code.UNAVAILABLE, "the ledger or the policy cannot be used", "run `toolgate doctor`")
    if here.closing.is_set():
        return problem(Code.UNAVAILABLE, "the server is ending", "start it again")
    return Json({"ok": True})


@health_router.get("/health", summary="What stands now")
async def health(here: HereServer, who: Anyone) -> Json:
    return Json({"ok": True, "persona": who.name, "ledger": await here.gate.ledger_state()})


@health_router.get("/metrics", summary="Prometheus", response_class=PlainTextResponse)
async def metrics(here: HereServer, who: Anyone) -> Response:
    """A persona's token gets the lines of that persona."""
    standing = await here.gate.ledger_state() | {"followers": here.notifier.followers}
    text = "\n".join(here.counts.lines(standing, who.only)) + "\n"
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
