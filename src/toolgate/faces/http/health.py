"""For whoever watches the server: is it alive, can it work, what are its numbers."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from toolgate.core.errors import CallError, Code
from toolgate.faces.http.site import HereServer
from toolgate.kits.web.answers import Json, problem
from toolgate.kits.web.auth import Anyone

public = APIRouter(tags=["health"])
"""Without a token: they say yes or no and nothing else."""
router = APIRouter(tags=["health"])


@public.get("/health/live", summary="Is the process alive")
async def live() -> Json:
    return Json({"ok": True})


@public.get("/health/ready", summary="Can calls be made: ledger open, policy readable")
async def ready(here: HereServer) -> Json:
    try:
        await here.gate.check_ready()
    except CallError:
        return problem(Code.UNAVAILABLE, "the ledger or the policy cannot be used", "run `toolgate doctor`")
    if here.closing.is_set():
        return problem(Code.UNAVAILABLE, "the server is ending", "start it again")
    return Json({"ok": True})


@router.get("/health", summary="What stands now")
async def health(here: HereServer, who: Anyone) -> Json:
    return Json({"ok": True, "persona": who.name, "ledger": await here.gate.ledger_state()})


@router.get("/metrics", summary="Prometheus", response_class=PlainTextResponse)
async def metrics(here: HereServer, who: Anyone) -> Response:
    """A persona's token gets the lines of that persona."""
    standing = await here.gate.ledger_state() | {"followers": here.notifier.followers}
    text = "\n".join(here.counts.lines(standing, who.only)) + "\n"
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
