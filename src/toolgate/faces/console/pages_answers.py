"""Answers: approve once, refuse with a reason, allow for a while; one question or several of a kind."""

from __future__ import annotations

import hmac
from typing import Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.consent.works import Scope
from toolgate.core.apart import apart
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotAllowed, NotFound, TooLarge
from toolgate.core.ports import Question
from toolgate.faces.console import granting
from toolgate.faces.console.console import Console
from toolgate.faces.console.pages_inbox import MOST_TOGETHER, alike, reader, shown, still_open
from toolgate.faces.console.question import too_large
from toolgate.kits.web.auth import MAX_FORM, Human, Identity, form
from toolgate.kits.web.pages import is_part

Word = Literal["approve", "deny"]


def add(pages: APIRouter, console: Console) -> None:
    @pages.post("/questions")
    async def answer_several(request: Request, who: Human) -> Response:
        given = await _forms(request)
        asked = alike([await still_open(console, ident) for ident in dict.fromkeys(given.get("id", []))])
        shown_to = set(given.get("digest", []))
        for question in asked:
            await _same(console, question, question.digest if question.digest in shown_to else "")
        word, reason = _word((given.get("answer") or [""])[-1]), (given.get("reason") or [""])[-1]
        for question in asked:
            await _answer(console, who, question.id, word, reason, None)
        return console.to("/")

    @pages.post("/questions/{ident}/{answer}")
    async def answer(
        request: Request, who: Human, ident: str, answer: Literal["approve", "refuse", "grant"]
    ) -> Response:
        given = await form(request)
        asked = await console.gate.question(ident)
        if asked is not None:
            await _same(console, asked, given.get("digest", ""))
        scope = granting.scope_of(given, asked) if answer == "grant" and asked is not None else None
        word: Word = "deny" if answer == "refuse" else "approve"
        late: CallError | None = None
        try:
            await _answer(console, who, ident, word, given.get("reason", ""), scope)
        except (NotFound, Conflict) as error:  # somebody else was first: show what became of it
            late = error
        if not is_part(request):
            return console.to(f"/questions/{ident}")
        return await console.part(
            who, "part_question.html", **await shown(console, ident, trouble=late, who=who)
        )


async def _same(console: Console, question: Question, digest: str) -> None:
    """The answer is to what was shown: the form carries its digest."""
    if not hmac.compare_digest(digest.encode(), question.digest.encode()):
        await console.site.refused(f"an answer to {question.id} came with a form made for another call")
        raise Conflict("the form was made for another call", "reload the page and look again")


def _word(answer: str) -> Word:
    if answer not in ("approve", "refuse"):
        raise InvalidArgs(f"{answer[:40]!r} is not an answer", "approve or refuse")
    return "approve" if answer == "approve" else "deny"


async def _answer(
    console: Console,
    who: Identity,
    ident: str,
    word: Word,
    reason: str,
    scope: Scope | None,
) -> None:
    try:
        if word == "approve":
            await _showable(console, who, ident)
        await console.gate.answer(ident, word, reason=reason[:4000].strip(), scope=scope, channel=who.channel)
    except CallError as error:  # late, repeated, misplaced: it changed nothing, and is kept
        await console.site.refused(f"an answer to {console.site.shown(ident)} was refused: {error.message}")
        raise


async def _showable(console: Console, who: Identity, ident: str) -> None:
    asked = await console.gate.question(ident)
    if asked is None or not await apart(too_large, asked):
        return
    if not await apart(console.reading.read, reader(who), asked):
        raise NotAllowed(
            "this is too large for a page and has not been shown in full, so it cannot be approved here",
            f"go through it piece by piece or download it first, or use `toolgate approvals {asked.id}`",
        )


async def _forms(request: Request) -> dict[str, list[str]]:
    raw = await request.body()
    if len(raw) > MAX_FORM:
        raise TooLarge(f"the form has {len(raw):,} bytes, the limit is {MAX_FORM:,}", "send less")
    try:
        return parse_qs(raw.decode("utf-8", "replace"), max_num_fields=4 * MOST_TOGETHER)
    except ValueError:
        return {}
