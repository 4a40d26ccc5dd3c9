"""What only the human decides: questions and grants."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field

from toolgate.consent.works import Scope
from toolgate.core.apart import apart
from toolgate.core.errors import CallError, NotFound
from toolgate.faces.http import shapes
from toolgate.kits.web.answers import Json, Measured, Why
from toolgate.kits.web.auth import Human
from toolgate.kits.web.site import Here

router = APIRouter(tags=["humans decide"], route_class=Measured)
Reason = Annotated[str, Field(max_length=4000)]


class ScopeGiven(BaseModel):
    """What a grant covers, besides the question's persona and tool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    args: dict[str, Any] = Field(default_factory=dict, max_length=100)
    paths: list[Annotated[str, Field(max_length=4096)]] = Field(default_factory=list, max_length=1000)
    conversation: Annotated[str, Field(max_length=256)] = ""
    seconds: float = 3600
    uses: int = 0


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    answer: Literal["approve", "deny"]
    reason: Reason = ""
    scope: ScopeGiven | None = None
    """Approve, and grant what this covers."""


EXAMPLES: Any = {
    "once": {"summary": "approve once", "value": {"answer": "approve"}},
    "deny": {"summary": "refuse", "value": {"answer": "deny", "reason": "not on a Friday"}},
    "grant": {
        "summary": "approve, and allow such calls for an hour",
        "value": {"answer": "approve", "scope": {"paths": ["docs/**"], "seconds": 3600, "uses": 10}},
    },
}


MOST_LISTED = 200
"""Questions on one page."""


@router.get("/approvals", summary="Open questions, oldest first")
async def approvals(
    here: Here,
    cursor: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
) -> Json:
    """`next` is the cursor of the next page, null on the last one; `total` counts all that are open. What is longer than
    some pages is cut here, and has `cut`; the question by itself is whole."""
    page = await here.gate.questions(limit, cursor, whole=True)
    shown = await apart(list, map(shapes.listed, page.questions))
    return Json({"approvals": shown, "total": page.total, "next": page.next})


@router.get("/approvals/{ident}", summary="One question in full")
async def approval(here: Here, ident: str) -> Json:
    found = await here.gate.question(ident)
    if found is None:
        raise NotFound(
            f"there is no open question {ident[:80]}", f"/api/v1/calls/{ident[:80]} says what became of it"
        )
    return Json(shapes.question(found))


@router.post("/approvals/{ident}", summary="Answer a question")
async def answer(
    here: Here, who: Human, ident: str, given: Annotated[Answer, Body(openapi_examples=EXAMPLES)]
) -> Json:
    """The first answer counts. It is bound to exactly the call that was shown."""
    asked = given.scope
    scope = Scope(**asked.model_dump() | {"paths": tuple(asked.paths)}) if asked is not None else None
    try:
        outcome = await here.gate.answer(
            ident, given.answer, reason=given.reason, scope=scope, channel=who.channel
        )
    except CallError as error:  # late, repeated, misplaced: it changed nothing, and is kept
        await here.refused(f"an answer to {here.shown(ident)} was refused: {error.message}")
        raise
    given_now = (
        [each for each in await here.gate.grants() if each.body.get("question") == ident] if scope else []
    )
    return Json(
        {"id": ident, "outcome": outcome} | ({"grant": shapes.grant(given_now[0])} if given_now else {})
    )


@router.get("/grants", summary="Live grants")
async def grants(here: Here) -> Json:
    return Json({"grants": [shapes.grant(each) for each in await here.gate.grants()]})


@router.post("/grants/{ident}/revoke", summary="Take a grant back")
async def revoke(here: Here, who: Human, ident: str, why: Why | None = None) -> Json:
    await here.gate.revoke(ident, reason=why.reason if why else "", channel=who.channel)
    return Json({"id": ident, "revoked": True})
