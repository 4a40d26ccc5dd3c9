"""Events as they are recorded, as server-sent events. A client that lost the connection says which one it saw last."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from toolgate.core.errors import CallError, InvalidArgs
from toolgate.core.event import BY_KIND
from toolgate.faces.http import shapes
from toolgate.faces.http.site import HereServer, ServerSite
from toolgate.kits.web.auth import Anyone, Identity, still
from toolgate.storage.port import Filter, Row

log = logging.getLogger("toolgate.http")
MOST_IDS = 200
"""Open questions that a stream names; of more it says only how many there are."""
HEARTBEAT = 15.0
BATCH = 200
router = APIRouter(tags=["record"])


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
                yield _frame(row.kind, _json(shapes.event(row)), row)
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
