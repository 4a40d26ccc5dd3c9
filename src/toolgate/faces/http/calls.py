"""Calling tools, and seeing which there are."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgate.core.errors import CallError, Code, NotAllowed, ToolgateError
from toolgate.core.result import Meta, Result
from toolgate.faces.http.site import HereServer, ServerSite
from toolgate.kits.web.answers import Json, Measured, problem_of, result
from toolgate.kits.web.auth import Anyone, Identity, anyone, given

LONGEST_WAIT = 3600.0
Word = Annotated[str, Field(max_length=256)]
PATH = "/api/v1/calls"
SHORT = 64 << 10
"""Bytes of a request that are read where we stand."""

router = APIRouter(tags=["calls"], route_class=Measured)


class Called(BaseModel):
    """One call. `key` makes a repeat safe; `wait` waits for a human's answer, for so many seconds at most."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: Annotated[str, Field(max_length=256)]
    args: dict[str, Any] = Field(default_factory=dict)
    persona: Word = ""
    key: Word | None = None
    reason: Annotated[str, Field(max_length=4000)] = ""
    conversation: Word = ""
    transaction: Word = ""
    action: Word = ""
    plan: Word = ""
    step: Word = ""
    wait: bool | Annotated[float, Field(ge=0, le=LONGEST_WAIT)] = False


_WORDS = tuple(name for name in Called.model_fields if name not in ("tool", "args", "persona", "wait"))
EXAMPLES: Any = {
    "read": {"summary": "a call", "value": {"tool": "system.ping", "args": {"message": "hello"}}},
    "asks": {
        "summary": "one that asks a human, waits for the answer, and can be repeated safely",
        "value": {
            "tool": "fs.write", "args": {"path": "notes.md", "content": "hi\n"}, "key": "request-17",
            "reason": "the user asked for it", "conversation": "c-1", "wait": 60,
        },
    },
}  # fmt: skip


class Direct:
    """Calls without what FastAPI does for every request, a third of what the gate takes for a read. Only where
    nothing but a token is asked for; whatever is unusual goes the usual way, and hears the usual words."""

    def __init__(self, app: ASGIApp, site: ServerSite) -> None:
        self.app, self.site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST" or not _plain(scope):
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        called = _called(body)
        if called is None:
            return await self.app(scope, _again(body, receive), send)
        try:
            answer = await call(self.site, await anyone(request), request, called)
        except ToolgateError as error:
            answer = problem_of(error)
        return await answer(scope, receive, send)


def _plain(scope: Scope) -> bool:
    """Short JSON, and no page is wanted."""
    lengths = given(scope, b"content-length")
    return (
        given(scope, b"content-type") == ["application/json"]
        and len(lengths) == 1
        and int(lengths[0]) <= SHORT  # the guard has seen that it is a number
        and not any("text/html" in accept for accept in given(scope, b"accept"))
    )


def _called(body: bytes) -> Called | None:
    try:
        return Called.model_validate(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _again(body: bytes, receive: Receive) -> Receive:
    """For whoever reads it a second time."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


@router.post("/calls", summary="Call a tool")
async def call(
    here: HereServer,
    who: Anyone,
    request: Request,
    called: Annotated[Called, Body(openapi_examples=EXAMPLES)],
) -> Json:
    """The answer is a Result. Its status follows the error code: 200 it happened, 202 `pending`, and so on (docs/http.md)."""
    persona = await persona_of(here, who, called.persona)
    words = {name: getattr(called, name) for name in _WORDS}
    seconds = LONGEST_WAIT if called.wait is True else float(called.wait)
    return result(await carry(here, request, called.tool, called.args, persona, words, seconds))


async def persona_of(here: ServerSite, who: Identity, asked: str) -> str | None:
    """A persona's token speaks for that persona; the human's for whom it names."""
    if who.human or asked in ("", who.name):
        return who.only or asked or None
    await here.refused(f"the token of {who.name} asked in the name of {here.shown(asked)}", who.name)
    raise NotAllowed(f"this is the token of {who.name}, not of {asked[:64]!r}", "leave `persona` out")


async def carry(
    here: ServerSite, request: Request, tool: str, args: dict[str, Any], persona: str | None, words: dict[str, Any],
    seconds: float,
) -> Result:  # fmt: skip
    """Make the call; while it is pending wait for the human and make it again. Nothing runs for a caller who left."""
    until = time.monotonic() + seconds
    while True:
        made = await here.gate.call(tool, args, persona=persona, wait=False, **words)
        if made.error is None or made.error.code is not Code.PENDING:
            return made
        left = until - time.monotonic()
        if left <= 0:
            return made
        try:
            if not await answered(here, request, made.data["question"], left):
                return made
        except CallError as error:
            return Result.refused(made.tool, error, Meta(made.meta.call_id))


async def answered(here: ServerSite, request: Request, question: str, seconds: float) -> bool:
    """Whether an approval came in time. A refusal or an expiry is raised."""
    waits = [
        asyncio.create_task(here.gate.answered(question), name=f"waits for {question}"),
        asyncio.create_task(_gone(request)),
        asyncio.create_task(here.closing.wait()),
    ]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not waits[0].done() or waits[1].done():
            return False
        await waits[0]
        return True
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@router.get("/tools", summary="The tools a persona may see")
async def tools(here: HereServer, who: Anyone, persona: Annotated[str, Query()] = "") -> Json:
    """With schemas, effects, and what policy says before arguments are known."""
    seen = here.gate.tools(await persona_of(here, who, persona))
    return Json({"tools": [spec.as_dict() for spec in seen]})
