"""Pages of what happened: the live feed with its filter, the ledger, and one event in full."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.core.apart import apart
from toolgate.core.event import BY_KIND
from toolgate.facade import Gate
from toolgate.faces.console.call_timeline import life
from toolgate.faces.console.calls import CallLine, calls, events
from toolgate.faces.console.console import Console
from toolgate.kits.web.auth import Human
from toolgate.kits.web.pages import is_part
from toolgate.storage.port import Filter

PAGE_LINES = 60
STRETCH_ROWS = 240
LOOKS = 8
"""How many stretches of the ledger one page looks through for lines that fit a filter."""
FILTERS = ("persona", "outcome", "tool", "conversation", "kind")
PAGE_ROWS = 100
Whole = Annotated[bool, Query(alias="all")]
Word = Annotated[str, Query(max_length=400)]
Number = Annotated[int, Query(ge=0, le=2**62)]


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/activity")
    async def activity(
        request: Request, who: Human, q: Word = "", before: Number = 0, persona: Word = ""
    ) -> Response:
        query = ActivityQuery.read(f"{q} persona:{persona}" if persona and "persona:" not in q else q)
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
            Filter(kinds=kinds, before=before, persona=persona, newest_first=True, limit=PAGE_ROWS + 1)
        )
        lines = await events(gate, rows[:PAGE_ROWS])
        more = rows[PAGE_ROWS - 1].seq if len(rows) > PAGE_ROWS else 0
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
        return await console.page(request, who, "event.html", under="/activity", life=found)


@dataclass(frozen=True)
class ActivityQuery:
    """`persona:builder outcome:refused tool:fs.* words`"""

    text: str = ""
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> ActivityQuery:
        fields: dict[str, tuple[str, ...]] = {}
        words: list[str] = []
        for part in text.split()[:20]:
            name, colon, value = part.partition(":")
            if colon and value and name in FILTERS:
                fields[name] = (*fields.get(name, ()), value[:80])
            else:
                words.append(part[:80].lower())
        return cls(text[:400], fields, tuple(words))

    def fits(self, line: CallLine) -> bool:
        known = {
            "persona": [line.persona], "outcome": [line.outcome, line.kind], "tool": [line.tool],
            "conversation": [line.conversation], "kind": line.kinds,
        }  # fmt: skip
        for name, wanted in self.fields.items():
            if not any(fnmatchcase(value, glob) for value in known[name] for glob in wanted):
                return False
        text = f"{line.persona} {line.tool} {line.object} {line.detail} {line.conversation} {line.outcome}".lower()
        return all(word in text for word in self.words)

    @property
    def base(self) -> Filter:
        """What the database can narrow by itself."""
        persona, conversation = (self._plain(name) for name in ("persona", "conversation"))
        return Filter(
            persona=persona,
            conversation=conversation,
            tool=self._plain("tool"),
            newest_first=True,
            limit=STRETCH_ROWS,
        )

    def _plain(self, name: str) -> str:
        values = self.fields.get(name, ())
        return values[0] if len(values) == 1 and not set("*?[") & set(values[0]) else ""


@dataclass
class FeedGroup:
    conversation: str
    lines: list[CallLine] = field(default_factory=list)


@dataclass
class ActivityFeed:
    groups: list[FeedGroup]
    more: int
    """Where the next page begins; 0 on the last."""
    newest: int


async def feed(gate: Gate, query: ActivityQuery, before: int = 0) -> ActivityFeed:
    found: list[CallLine] = []
    wanted, rows = replace(query.base, before=before), []
    for _ in range(LOOKS):
        part = await gate.events(wanted)
        rows += part
        found = [line for line in await apart(calls, rows) if query.fits(line)]
        if before:
            found = [line for line in found if not await _goes_on(gate, line, before)]
        if len(part) < STRETCH_ROWS or len(found) > PAGE_LINES:
            break
        wanted = replace(wanted, before=part[-1].seq)
    exhausted = len(rows) < STRETCH_ROWS or len(part) < STRETCH_ROWS
    more = found[PAGE_LINES - 1].seq if len(found) > PAGE_LINES else (0 if exhausted else rows[-1].seq)
    return ActivityFeed(grouped(found[:PAGE_LINES]), more, rows[0].seq if rows else 0)


async def _goes_on(gate: Gate, line: CallLine, before: int) -> bool:
    """Whether a call that looks unfinished here was told on an earlier page."""
    if line.kind not in ("asked", "approved", "started") or not line.call:
        return False
    newest = await gate.events(Filter(call=line.call, newest_first=True, limit=1))
    return bool(newest) and newest[0].seq >= before


def grouped(lines: list[CallLine]) -> list[FeedGroup]:
    """Conversations by their newest call; calls outside any stand by themselves where they are."""
    groups: list[FeedGroup] = []
    known: dict[str, FeedGroup] = {}
    for line in lines:
        group = (
            known.get(line.conversation)
            if line.conversation
            else (groups[-1] if groups and not groups[-1].conversation else None)
        )
        if group is None:
            group = FeedGroup(line.conversation)
            groups.append(group)
            known[line.conversation] = group
        group.lines.append(line)
    return groups
