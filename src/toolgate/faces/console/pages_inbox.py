"""Inbox: what wants to happen, shown in full, and the answer to it; what a grant would cover, in words, before it is given, and
how many past calls it would have covered."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolgate.consent import grants
from toolgate.consent.grants import check_scope, fits
from toolgate.consent.works import Scope, covered
from toolgate.core.apart import apart
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotAllowed, NotFound, Unavailable
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.console.call_timeline import life
from toolgate.faces.console.calls import calls
from toolgate.faces.console.console import Console, leaf
from toolgate.faces.console.question import MOST_CHARS, MOST_LINES, too_large, view
from toolgate.kits import pieces, words
from toolgate.kits.web.auth import Human, Identity, fields, form
from toolgate.kits.web.pages import is_part
from toolgate.storage.port import Filter

BEFORE = 5
MOST_TOGETHER = 50
"""Questions answered at once, and on one page."""
After = Annotated[int, Query(ge=0, le=2**62)]
Whole = Annotated[bool, Query(alias="all")]
Word = Annotated[str, Query(max_length=200)]
Verdict = Literal["approve", "deny"]
SPANS = {"15 minutes": 900, "1 hour": 3600, "8 hours": 28_800, "1 day": 86_400, "7 days": 604_800}
LOOKED_AT = 500
PROGRAM = "program"
SAME = "same."
"""Before the names of arguments in the form, so that none of them can pose as another field."""


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/")
    async def inbox(request: Request, who: Human, persona: Word = "", after: After = 0) -> Response:
        page = await listed(console, persona, after)
        items = page["items"]
        first = await shown(console, items[0]["id"], who=who) if items else {"view": None}
        return await console.page(
            request, who, "inbox.html", selected=items[0]["id"] if items else "", **page, **first
        )

    @pages.get("/parts/list")
    async def part_list(who: Human, selected: Word = "", persona: Word = "", after: After = 0) -> Response:
        page = await listed(console, persona, after)
        return await console.part(who, "part_list.html", **page, selected=selected, persona=persona)

    @pages.get("/questions")
    async def several(
        request: Request,
        who: Human,
        chosen: Annotated[list[str] | None, Query(alias="id", max_length=MOST_TOGETHER)] = None,
    ) -> Response:
        """Several of one kind, each shown in full, answered together."""
        asked = alike([await still_open(console, ident) for ident in dict.fromkeys(chosen or ())])
        if any(await apart(list, map(too_large, asked))):
            raise InvalidArgs("one of these is too large to be shown with others", "open it by itself")
        lines, chars = sum(map(pieces.extent_of, asked), start=pieces.Extent(0, 0))
        if lines > MOST_LINES or chars > MOST_CHARS:
            raise InvalidArgs("together these are too large for a page", "choose fewer of them")
        views = [await view(question, console.painter, whole=True) for question in asked]
        return await console.page(request, who, "several.html", under="/", views=views)

    @pages.get("/questions/{ident}")
    async def question(
        request: Request, who: Human, ident: str, whole: Whole = False, persona: Word = "", after: After = 0
    ) -> Response:
        data = await shown(console, ident, whole=whole, who=who)
        if is_part(request):
            return await console.part(who, "part_question.html", **data)
        return await console.page(
            request,
            who,
            "inbox.html",
            under="/",
            **await listed(console, persona, after),
            selected=ident,
            **data,
        )

    @pages.get("/questions/{ident}/pieces")
    async def leafed(
        request: Request, who: Human, ident: str, start: Annotated[int, Query(alias="from", ge=0)] = 0
    ) -> Response:
        asked = await still_open(console, ident)
        one = await apart(leaf, asked, start)
        console.reading.took(reader(who), asked.digest, one.start, one.end)
        read = await apart(console.reading.read, reader(who), asked)
        return await console.page(request, who, "leaf.html", under="/", leaf=one, question=asked, read=read)

    @pages.get("/questions/{ident}/text")
    async def text(who: Human, ident: str) -> Response:
        """All of it, to be looked at with other tools; whoever has it has been shown it."""
        asked = await still_open(console, ident)
        body = await apart("\n".join, pieces.as_text(asked))
        console.reading.took(reader(who), asked.digest, 0, await apart(pieces.total, asked))
        named = {"Content-Disposition": f'attachment; filename="{asked.id}.txt"'}
        return Response(
            body.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8", headers=named
        )

    @pages.get("/questions/{ident}/grant")
    async def grant_words(request: Request, who: Human, ident: str) -> Response:
        asked = await still_open(console, ident)
        try:
            scope = scope_of(request.query_params, asked)
            told, trouble = await grant_told(gate, asked, scope, console.now), ""
        except CallError as error:
            told, trouble = None, error.message
        return await console.part(who, "part_grant.html", told=told, trouble=trouble)

    _add_answers(pages, console)


def reader(who: Identity) -> str:
    return who.session.id if who.session is not None else who.name


async def listed(console: Console, persona: str = "", after: int = 0) -> dict[str, Any]:
    """A page of open questions, oldest first, told in one line each; how many there are, and where the next page begins."""
    page = await console.gate.questions(MOST_TOGETHER, after, persona=persona)
    console.forget_titles({each.id for each in page.questions})
    items = [
        {
            "id": each.id, "persona": each.persona, "tool": each.tool, "expires": each.expires_at, "asked": each.asked_at,
            "title": console.title(each),
            "kind": f"{each.persona} {each.tool}", "rationale": each.rationale,
            "findings": len(getattr(each, "findings", ())),
        }
        for each in page.questions
    ]  # fmt: skip
    return {"items": items, "total": page.total, "after": after, "following": page.next}


async def shown(
    console: Console,
    ident: str,
    *,
    whole: bool = False,
    trouble: CallError | None = None,
    who: Identity | None = None,
) -> dict[str, Any]:
    """The question while it is open; what became of it afterwards."""
    asked = await console.gate.question(ident)
    if asked is None or asked.state != "open" or asked.expires_at <= console.now:
        return {"view": None, "life": await life(console.gate, ident, console.painter), "trouble": trouble}
    if asked.problem and trouble is None:
        trouble = Unavailable(
            f"this cannot be approved, because only its beginning can be shown: {asked.problem}", "refuse it"
        )
    made = await view(asked, console.painter, whole=whole)
    made.read = made.too_large and who is not None and await apart(console.reading.read, reader(who), asked)
    before = await console.gate.events(Filter(persona=asked.persona, newest_first=True, limit=60))
    tool = console.gate.tool(asked.tool)
    return {
        "view": made,
        "before": [line for line in await apart(calls, before) if line.call and line.kind != "asked"][:BEFORE],
        "offer": offer(asked, tool), "spans": SPANS, "trouble": trouble,
        "about": tool.description if tool is not None else "",
    }  # fmt: skip


async def still_open(console: Console, ident: str) -> Question:
    found = await console.gate.question(ident)
    if found is None or found.state != "open":
        raise NotFound("this question is not open any more", "the inbox lists the open ones")
    return found


def alike(questions: list[Question]) -> list[Question]:
    if not questions:
        raise InvalidArgs("no question was chosen", "choose some in the inbox")
    if len({(each.tool, each.persona) for each in questions}) > 1:
        raise InvalidArgs("these are not of one kind", "choose questions of the same tool and persona")
    return questions


def _add_answers(pages: APIRouter, console: Console) -> None:
    """Approve once, refuse with a reason, allow for a while; one question or several of a kind."""

    @pages.post("/questions")
    async def answer_several(request: Request, who: Human) -> Response:
        given = await fields(request, 4 * MOST_TOGETHER)
        asked = alike(
            [await still_open(console, ident) for ident in dict.fromkeys(filter(None, given.get("id", [])))]
        )
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
        scope = scope_of(given, asked) if answer == "grant" and asked is not None else None
        word: Verdict = "deny" if answer == "refuse" else "approve"
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


def _word(answer: str) -> Verdict:
    if answer not in ("approve", "refuse"):
        raise InvalidArgs(f"{answer[:40]!r} is not an answer", "approve or refuse")
    return "approve" if answer == "approve" else "deny"


async def _answer(
    console: Console,
    who: Identity,
    ident: str,
    word: Verdict,
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


@dataclass(frozen=True)
class Offer:
    """What the form proposes: its paths, one to a line, and arguments that may be kept as they are."""

    paths: str
    rows: int
    same: list[tuple[str, str, bool]]
    """Names, in words what keeping them means, and whether that is proposed: of a move its direction, and where no path
    narrows the grant, all of them."""
    program: str
    """In words, what keeping the program alone means; empty where there is none."""
    on_paths: bool
    """Whether such calls have paths at all: a pattern would fit no call without one."""


@dataclass(frozen=True)
class Told:
    words: str
    past: int
    looked_at: int


def offer(question: Question, tool: Tool | None) -> Offer:
    """The narrowest grant that is more than this one call: its files, or else its arguments."""
    paths = grants.paths_of(question, tool)
    globs = grants.globs(paths)
    sides = grants.sides(question, paths) if globs else {}
    same = [(name, words.condition_in_words(condition), True) for name, condition in sides.items()]
    same += [
        (limit.name, words.condition_in_words(limit.condition), not globs)
        for limit in grants.limits(question, paths if globs else ())
        if limit.name not in sides
    ]
    program = grants.program_of(question)
    told = words.condition_in_words(program) if program is not None else ""
    return Offer("\n".join(globs), max(1, len(globs)), same, told, bool(paths) or tool is None)


def scope_of(form: Mapping[str, str], question: Question) -> Scope:
    """What was chosen. Only what the form offers can be chosen."""
    try:
        seconds = int(form.get("seconds", "3600"))
        uses = int(form.get("uses") or "0")
    except ValueError:
        raise InvalidArgs("a grant's time and uses are whole numbers", "choose from the list") from None
    # one to a line: a comma is a letter like any other in a name
    lines = (line.strip(" \t\r") for line in form.get("paths", "").split("\n"))
    kept = grants.same(question, [name.removeprefix(SAME) for name in form if name.startswith(SAME)])
    program = grants.program_of(question) if form.get(PROGRAM) else None
    if program is not None:
        kept[grants.ARGV] = program
    conversation = question.conversation if form.get("conversation") else ""
    return Scope(kept, tuple(line for line in lines if line), conversation, seconds, uses)


async def grant_told(gate: Gate, question: Question, scope: Scope, now: int) -> Told:
    check_scope(scope.args, scope.paths)
    body = covered(scope, question.args, question.effects)
    said = words.grant_in_words(question.persona, question.tool, body, now + round(scope.seconds * SECOND))
    rows = await gate.events(
        Filter(
            persona=question.persona,
            tool=question.tool,
            kinds=("started",),
            newest_first=True,
            limit=LOOKED_AT,
        )
    )
    past = 0
    for row in rows:
        recorded = words.body_of(row)
        paths = tuple(MountPath(entry["path"]) for entry in recorded.get("change", ()))
        past += fits(body, row.conversation, paths, recorded.get("args", {}))
    return Told(said, past, len(rows))
