"""From the printed address to a session: the token is exchanged for a cookie and leaves the address bar."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from toolgate.core.errors import NotAllowed
from toolgate.core.names import HUMAN
from toolgate.faces.console.templates import login_page
from toolgate.kits.web.answers import Unauthenticated
from toolgate.kits.web.auth import Human, by_token, form
from toolgate.kits.web.site import COOKIE, LIFETIME, Here, Site

router = APIRouter(include_in_schema=False)
inside = APIRouter(include_in_schema=False)
"""Below the console's own path, where its cookie is sent."""


@router.get("/")
async def enter(here: Here, request: Request, token: Annotated[str, Query()] = "") -> Response:
    return await _login(here, request, token) if token else login_page()


@router.post("/login")
async def login(here: Here, request: Request) -> Response:
    return await _login(here, request, (await form(request)).get("token", "").strip())


@inside.post("/logout")
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
