"""Routes of the human alone: questions and grants, pause, ask policy why, verify the ledger, settle what is unknown. What it
tells of questions and grants is the same as `--json` of the command line."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field

from toolgate.consent.works import Scope
from toolgate.core.apart import apart
from toolgate.core.clock import iso
from toolgate.core.errors import CallError, NotFound
from toolgate.core.ports import Question
from toolgate.gate.shape import cut
from toolgate.kits import pieces
from toolgate.kits.web.answers import Json, Measured, Why
from toolgate.kits.web.auth import Human
from toolgate.kits.web.site import Here
from toolgate.kits.words import grant_as_data, moves_of

router = APIRouter(tags=["humans decide"], route_class=Measured)
Reason = Annotated[str, Field(max_length=4000)]
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
LISTED = 64 << 10
"""Characters of one question in a list."""
Name = Annotated[str, Field(max_length=64)]


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


@router.get("/approvals", summary="Open questions, oldest first")
async def approvals(
    here: Here,
    cursor: Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
) -> Json:
    """`next` is the cursor of the next page, null on the last one; `total` counts all that are open. What is longer than
    some pages is cut here, and has `cut`; the question by itself is whole."""
    page = await here.gate.questions(limit, cursor, whole=True)
    shown = await apart(list, map(listed_as_data, page.questions))
    return Json({"approvals": shown, "total": page.total, "next": page.next})


@router.get("/approvals/{ident}", summary="One question in full")
async def approval(here: Here, ident: str) -> Json:
    found = await here.gate.question(ident)
    if found is None:
        raise NotFound(
            f"there is no open question {ident[:80]}", f"/api/v1/calls/{ident[:80]} says what became of it"
        )
    return Json(question_as_data(found))


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
        {"id": ident, "outcome": outcome} | ({"grant": grant_as_data(given_now[0])} if given_now else {})
    )


def question_as_data(item: Question) -> dict[str, Any]:
    return _fields_of(item) | {
        "effects": asdict(item.effects), "args": dict(item.args), "channels": list(item.channels),
        "asked_at": iso(item.asked_at), "expires_at": iso(item.expires_at),
        "moves": [{"from": old, "to": new} for old, new in moves_of(item.preview)],
    }  # fmt: skip


def _fields_of(item: Question) -> dict[str, Any]:
    """Its fields as they are: `asdict` would copy megabytes of arguments."""
    return {each.name: getattr(item, each.name) for each in fields(item)}


def listed_as_data(item: Question) -> dict[str, Any]:
    """One of many: what is long is cut and says so, `cut` too. The question by itself has all of it."""
    if sum(pieces.extent_of(item)) <= LISTED:
        return question_as_data(item)
    short = replace(item, args=cut(dict(item.args), LISTED // 2), preview=cut(item.preview, LISTED // 2))
    return question_as_data(short) | {"cut": True}


@router.get("/grants", summary="Live grants")
async def grants(here: Here) -> Json:
    return Json({"grants": [grant_as_data(each) for each in await here.gate.grants()]})


@router.post("/grants/{ident}/revoke", summary="Take a grant back")
async def revoke(here: Here, who: Human, ident: str, why: Why | None = None) -> Json:
    await here.gate.revoke(ident, reason=why.reason if why else "", channel=who.channel)
    return Json({"id": ident, "revoked": True})


class Pause(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    persona: Name = ""
    """Empty: everybody."""
    reason: Reason = ""


class Resume(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    persona: Name = ""


class Explain(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"tool": "fs.write", "args": {"path": "a"}, "persona": "builder"}]},
    )

    tool: Annotated[str, Field(max_length=256)]
    args: dict[str, Any] = Field(default_factory=dict)
    persona: Name = ""


class Outcome(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    outcome: Literal["happened", "not"]
    reason: Reason = ""


@router.get("/pauses", summary="Who is paused")
async def pauses(here: Here) -> Json:
    paused = await here.gate.paused()
    return Json({"pauses": [{"persona": name, "reason": why} for name, why in paused.items()]})


@router.post("/pause", summary="Stop a persona, or everybody, at once")
async def pause(here: Here, asked: Pause) -> Json:
    await here.gate.pause(asked.persona, reason=asked.reason)
    return Json({"persona": asked.persona, "paused": True})


@router.post("/resume", summary="Lift a pause")
async def resume(here: Here, asked: Resume) -> Json:
    await here.gate.resume(asked.persona)
    return Json({"persona": asked.persona, "paused": False})


@router.post("/policy/explain", summary="Every line of policy that a call would meet, and which decides")
async def explain(here: Here, asked: Explain) -> Json:
    told = await here.gate.explain(asked.tool, asked.args, asked.persona or None)
    lines = [
        {"persona": each.persona, "step": each.step, "text": each.text, "why": each.why,
         "verdict": each.verdict.value if each.verdict else None, "decided": each.decided}
        for each in told.lines
    ]  # fmt: skip
    decision = {
        "verdict": told.decision.verdict.value, "reason": told.decision.reason, "rule": told.decision.rule,
    }  # fmt: skip
    return Json(
        {"tool": told.facts.tool.name, "persona": told.facts.persona, "decision": decision, "lines": lines}
    )


@router.post("/ledger/verify", summary="Check every event, seal and projection")
async def verify(here: Here) -> Json:
    return Json((await here.gate.verify()).as_dict())


@router.post("/ledger/resolve/{ident}", summary="Say how an unknown call ended")
async def resolve(here: Here, ident: str, asked: Outcome) -> Json:
    event = await here.gate.resolve(ident, asked.outcome, reason=asked.reason)
    return Json({"id": ident, "outcome": asked.outcome, "event_id": event})
