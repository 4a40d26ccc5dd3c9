"""Router of the console: its doors, its own pages and those of features.

At the door the token of the printed address is exchanged for a cookie, and leaves the address bar. All pages are below the
console's path, for the human's session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from toolgate.core.errors import NotAllowed, NotFound
from toolgate.core.names import HUMAN
from toolgate.faces.console import pages_inbox, pages_policy, pages_record
from toolgate.faces.console.console import Console, route_class
from toolgate.faces.console.templates import login_page
from toolgate.feature import load
from toolgate.kits.web.answers import Unauthenticated
from toolgate.kits.web.auth import Human, by_token, form
from toolgate.kits.web.pages import is_part
from toolgate.kits.web.site import COOKIE, LIFETIME, Here, Site

doors = APIRouter(include_in_schema=False)
inner_doors = APIRouter(include_in_schema=False)
"""Below the console's own path, where its cookie is sent."""


@doors.get("/")
async def enter(here: Here, request: Request, token: Annotated[str, Query()] = "") -> Response:
    return await _login(here, request, token) if token else login_page()


@doors.post("/login")
async def login(here: Here, request: Request) -> Response:
    return await _login(here, request, (await form(request)).get("token", "").strip())


@inner_doors.post("/logout")
async def logout(here: Here, who: Human) -> Response:
    if who.session is not None:
        here.sessions.end(who.session.id)
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE, path=here.base)
    return answer


async def _login(here: Site, request: Request, token: str) -> Response:
    try:
        who = await by_token(here, request, token)
    except Unauthenticated as error:
        return login_page(error.message, 401)
    if who.name != HUMAN:
        await here.refused(f"the token of {who.name} was used to log in", who.name)
        raise NotAllowed(
            f"the token of {who.name} does not open the console", "`toolgate token` prints the human's"
        )
    session = here.sessions.begin(token)
    answer = RedirectResponse(f"{here.base}/", 303)
    answer.set_cookie(
        COOKIE, session.id, max_age=int(LIFETIME), path=here.base, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


def router(console: Console) -> APIRouter:
    """Included below `site.base`; links in pages begin with it. `{base}/api/v1` is the API for the session's cookie."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        await console.close()

    made = APIRouter(route_class=route_class(console), lifespan=lifespan)
    for part in (pages_inbox, pages_record, pages_policy):
        part.add(made, console)
    for _, page in console.brought:
        load(page.adds)(made, console)
    return made


def no_such_page(console: Console) -> APIRouter:
    """Included last: whatever else is asked for below the console's path. It is a page too, with the way on."""
    made = APIRouter(route_class=route_class(console))

    @made.api_route("/{rest:path}", methods=["GET", "POST"])
    async def lost(request: Request, rest: str) -> Response:
        if rest.startswith("api/") or is_part(request):
            raise HTTPException(404)
        raise NotFound(f"there is no page /{rest[:200]}", "check the address, or choose one of the pages")

    return made
