"""Inbox: what wants to happen, shown in full, and the answer to it."""

from __future__ import annotations

import hmac
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.consent.works import Scope
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotFound
from toolgate.core.ports import Question
from toolgate.faces.console import granting
from toolgate.faces.console.calls import calls
from toolgate.faces.console.console import Console, is_part
from toolgate.faces.console.diffs import parse
from toolgate.faces.console.life import life
from toolgate.faces.console.question import deed, view
from toolgate.faces.http.auth import Human, Identity, form
from toolgate.storage.port import Filter

BEFORE = 5
MOST = 50
"""Questions answered at once."""
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
        request: Request, who: Human, id: Annotated[list[str], Query(max_length=MOST)] = []
    ) -> Response:
        """Several of one kind, each shown in full, answered together."""
        asked = alike([await _open(console, ident) for ident in dict.fromkeys(id)])
        views = [await view(question, console.painter, whole=True) for question in asked]
        return await console.page(request, who, "several.html", views=views)

    @pages.post("/questions")
    async def answer_several(request: Request, who: Human) -> Response:
        given = await _forms(request)
        asked = alike([await _open(console, ident) for ident in dict.fromkeys(given.get("id", []))])
        digests = given.get("digest", [])
        for question in asked:
            _same(
                question, next((each for each in digests if hmac.compare_digest(each, question.digest)), "")
            )
        word = (given.get("answer") or [""])[-1]
        for question in asked:
            await _answer(console, who, question.id, _word(word), (given.get("reason") or [""])[-1], None)
        return console.to("/")

    @pages.get("/questions/{ident}")
    async def question(
        request: Request, who: Human, ident: str, all: bool = False, persona: Word = ""
    ) -> Response:
        data = await shown(console, ident, whole=all)
        if is_part(request):
            return console.part(who, "part_question.html", **data)
        return await console.page(
            request, who, "inbox.html", items=await listed(console, persona), selected=ident, **data
        )

    @pages.get("/questions/{ident}/grant")
    async def grant_words(request: Request, who: Human, ident: str) -> Response:
        asked = await _open(console, ident)
        try:
            scope = granting.scope_of(request.query_params, asked)
            told, trouble = await granting.told(gate, asked, scope, console.now), ""
        except CallError as error:
            told, trouble = None, error.message
        return console.part(who, "part_grant.html", told=told, trouble=trouble)

    @pages.post("/questions/{ident}/{answer}")
    async def answer(
        request: Request, who: Human, ident: str, answer: Literal["approve", "refuse", "grant"]
    ) -> Response:
        given = await form(request)
        asked = await gate.services.desk.question(ident)
        if asked is not None:
            _same(asked, given.get("digest", ""))
        scope = granting.scope_of(given, asked) if answer == "grant" and asked is not None else None
        trouble: CallError | None = None
        try:
            await _answer(
                console,
                who,
                ident,
                "deny" if answer == "refuse" else "approve",
                given.get("reason", ""),
                scope,
            )
        except CallError as error:
            trouble = error
        if trouble is not None and not isinstance(trouble, NotFound | Conflict):
            raise trouble
        if not is_part(request):
            return console.to(f"/questions/{ident}")
        return console.part(who, "part_question.html", **await shown(console, ident, trouble=trouble))


async def listed(console: Console, persona: str = "") -> list[dict[str, Any]]:
    """Open questions, oldest first, told in one line each."""
    return [
        {
            "id": each.id, "persona": each.persona, "tool": each.tool, "expires": each.expires_at, "asked": each.asked_at,
            "title": deed(each.tool, parse(each.preview) if each.preview else []),
            "kind": f"{each.persona} {each.tool}", "rationale": each.rationale,
            "findings": len(getattr(each, "findings", ())),
        }
        for each in await console.gate.approvals()
        if persona in ("", each.persona)
    ]  # fmt: skip


async def shown(
    console: Console, ident: str, *, whole: bool = False, trouble: CallError | None = None
) -> dict[str, Any]:
    """The question while it is open; what became of it afterwards."""
    asked = await console.gate.services.desk.question(ident)
    if asked is None or asked.state != "open" or asked.expires_at <= console.now:
        return {"view": None, "life": await life(console.gate, ident, console.painter), "trouble": trouble}
    before = await console.gate.events(Filter(persona=asked.persona, newest_first=True, limit=60))
    return {
        "view": await view(asked, console.painter, whole=whole),
        "before": [line for line in calls(before) if line.call and line.kind != "asked"][:BEFORE],
        "offer": granting.offer(asked), "spans": granting.SPANS, "trouble": trouble,
        "about": next((one.description for one in console.gate.services.registry if one.name == asked.tool), ""),
    }  # fmt: skip


async def _open(console: Console, ident: str) -> Question:
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


def _same(question: Question, digest: str) -> None:
    """The answer is to what was shown: the form carries its digest."""
    if not hmac.compare_digest(digest, question.digest):
        raise Conflict("the form was made for another call", "reload the page and look again")


def _word(answer: str) -> Literal["approve", "deny"]:
    if answer not in ("approve", "refuse"):
        raise InvalidArgs(f"{answer[:40]!r} is not an answer", "approve or refuse")
    return "approve" if answer == "approve" else "deny"


async def _answer(
    console: Console,
    who: Identity,
    ident: str,
    word: Literal["approve", "deny"],
    reason: str,
    scope: Scope | None,
) -> None:
    try:
        await console.gate.answer(ident, word, reason=reason[:4000].strip(), scope=scope, channel=who.channel)
    except CallError as error:  # late, repeated, misplaced: it changed nothing, and is kept
        await console.site.refused(f"an answer to {console.site.shown(ident)} was refused: {error.message}")
        raise


async def _forms(request: Request) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    try:
        return parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=4 * MOST)
    except ValueError:
        return {}
