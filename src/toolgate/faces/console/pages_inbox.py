"""Inbox: what wants to happen, shown in full, and the answer to it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.core.errors import CallError, InvalidArgs, NotFound, Unavailable
from toolgate.core.ports import Question
from toolgate.faces.console import granting
from toolgate.faces.console.calls import calls
from toolgate.faces.console.console import Console, is_part
from toolgate.faces.console.life import life
from toolgate.faces.console.question import too_large, view
from toolgate.faces.http.auth import Human
from toolgate.storage.port import Filter

BEFORE = 5
MOST = 50
"""Questions answered at once."""
Whole = Annotated[bool, Query(alias="all")]
Word = Annotated[str, Query(max_length=200)]


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/")
    async def inbox(request: Request, who: Human, persona: Word = "") -> Response:
        items = await listed(console, persona)
        first = await shown(console, items[0]["id"]) if items else {"view": None}
        return await console.page(
            request, who, "inbox.html", items=items, selected=items[0]["id"] if items else "", **first
        )

    @pages.get("/parts/list")
    async def part_list(who: Human, selected: Word = "", persona: Word = "") -> Response:
        return console.part(
            who, "part_list.html", items=await listed(console, persona), selected=selected, persona=persona
        )

    @pages.get("/questions")
    async def several(
        request: Request,
        who: Human,
        chosen: Annotated[list[str] | None, Query(alias="id", max_length=MOST)] = None,
    ) -> Response:
        """Several of one kind, each shown in full, answered together."""
        asked = alike([await still_open(console, ident) for ident in dict.fromkeys(chosen or ())])
        if any(map(too_large, asked)):
            raise InvalidArgs("one of these is too large to be shown with others", "open it by itself")
        views = [await view(question, console.painter, whole=True) for question in asked]
        return await console.page(request, who, "several.html", views=views)

    @pages.get("/questions/{ident}")
    async def question(
        request: Request, who: Human, ident: str, whole: Whole = False, persona: Word = ""
    ) -> Response:
        data = await shown(console, ident, whole=whole)
        if is_part(request):
            return console.part(who, "part_question.html", **data)
        return await console.page(
            request, who, "inbox.html", items=await listed(console, persona), selected=ident, **data
        )

    @pages.get("/questions/{ident}/grant")
    async def grant_words(request: Request, who: Human, ident: str) -> Response:
        asked = await still_open(console, ident)
        try:
            scope = granting.scope_of(request.query_params, asked)
            told, trouble = await granting.told(gate, asked, scope, console.now), ""
        except CallError as error:
            told, trouble = None, error.message
        return console.part(who, "part_grant.html", told=told, trouble=trouble)


async def listed(console: Console, persona: str = "") -> list[dict[str, Any]]:
    """Open questions, oldest first, told in one line each."""
    found = await console.gate.approvals()
    console.forget_titles({each.id for each in found})
    return [
        {
            "id": each.id, "persona": each.persona, "tool": each.tool, "expires": each.expires_at, "asked": each.asked_at,
            "title": console.title(each),
            "kind": f"{each.persona} {each.tool}", "rationale": each.rationale,
            "findings": len(getattr(each, "findings", ())),
        }
        for each in found
        if persona in ("", each.persona)
    ]  # fmt: skip


async def shown(
    console: Console, ident: str, *, whole: bool = False, trouble: CallError | None = None
) -> dict[str, Any]:
    """The question while it is open; what became of it afterwards."""
    asked = await console.gate.services.desk.question(ident)
    if asked is None or asked.state != "open" or asked.expires_at <= console.now:
        return {"view": None, "life": await life(console.gate, ident, console.painter), "trouble": trouble}
    if asked.problem and trouble is None:
        trouble = Unavailable(
            f"this cannot be approved, because only its beginning can be shown: {asked.problem}", "refuse it"
        )
    before = await console.gate.events(Filter(persona=asked.persona, newest_first=True, limit=60))
    return {
        "view": await view(asked, console.painter, whole=whole),
        "before": [line for line in calls(before) if line.call and line.kind != "asked"][:BEFORE],
        "offer": granting.offer(asked), "spans": granting.SPANS, "trouble": trouble,
        "about": next((one.description for one in console.gate.services.registry if one.name == asked.tool), ""),
    }  # fmt: skip


async def still_open(console: Console, ident: str) -> Question:
    found = await console.gate.services.desk.question(ident)
    if found is None or found.state != "open":
        raise NotFound("this question is not open any more", "the inbox lists the open ones")
    return found


def alike(questions: list[Question]) -> list[Question]:
    if not questions:
        raise InvalidArgs("no question was chosen", "choose some in the inbox")
    if len({(each.tool, each.persona) for each in questions}) > 1:
        raise InvalidArgs("these are not of one kind", "choose questions of the same tool and persona")
    return questions
