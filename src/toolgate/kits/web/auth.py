"""Authentication of a request: a token in the Authorization header, or a session of the console.

Two questions a route can ask: `anyone` (with a token) and `human`. A persona's token is refused where only the human
decides, and the ledger keeps that it was tried. A session's cookie is believed for reading; what changes something
also needs the session's CSRF token.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from starlette.types import Scope

from toolgate.core.errors import CallError, NotAllowed, TooLarge, ToolgateError
from toolgate.core.names import HUMAN
from toolgate.kits.web.answers import SAFE, Unauthenticated
from toolgate.kits.web.site import COOKIE, ConsoleSession, Site, digest, site_of

MAX_FORM = 256 << 10
CSRF_HEADER = "X-CSRF-Token"
CSRF_FIELD = "csrf"
_HOW = "send `Authorization: Bearer TOKEN`; `toolgate token` prints the human's, `toolgate token PERSONA` a persona's"


@dataclass(frozen=True)
class Identity:
    name: str
    """`human`, or the persona's name."""
    session: ConsoleSession | None = None
    token: str = ""
    """The hash of the token that was shown; a long connection ends when it is replaced."""

    @property
    def human(self) -> bool:
        return self.name == HUMAN

    @property
    def channel(self) -> str:
        """What the ledger records as the place of an answer."""
        return "console" if self.session is not None else "http"

    @property
    def only(self) -> str:
        """The persona whose events alone may be seen; empty for the human, who sees all."""
        return "" if self.human else self.name


async def anyone(request: Request) -> Identity:
    """Whoever has a token or a session."""
    site = site_of(request)
    shown = given(request.scope, b"authorization")
    if shown:
        return await by_token(site, request, _bearer(shown))
    cookie = request.cookies.get(COOKIE, "")
    session = site.sessions.find(cookie, site.tokens.of(HUMAN)) if cookie else None
    if session is None:
        raise Unauthenticated("nobody is logged in", _HOW)
    if request.method not in SAFE:
        await csrf(request, session)
    return Identity(HUMAN, session)


Anyone = Annotated[Identity, Depends(anyone)]


async def human(request: Request, who: Anyone) -> Identity:
    """The human, and nobody else."""
    if not who.human:
        site = site_of(request)
        where = f"{request.method} {site.shown(request.url.path)}"
        await site.refused(f"the token of {who.name} was used on {where}", who.name)
        raise NotAllowed(
            f"the token of {who.name} may not be used on {where}",
            "only the human's token decides here; a persona's makes calls",
        )
    return who


Human = Annotated[Identity, Depends(human)]
Routes = Sequence[tuple[APIRouter, Callable[..., Awaitable[Identity]]]]
"""Routers, each with who may use it: `anyone` or `human`."""


async def by_token(site: Site, request: Request, token: str) -> Identity:
    name = site.tokens.owner(token) if token else ""
    if not name:
        address = request.client.host if request.client else "unknown"
        site.throttle.failed(address)
        await site.refused(f"a token that nobody has was used from {site.shown(address)}")
        raise Unauthenticated("this is nobody's token", _HOW)
    if name != HUMAN and name not in _personas(site):
        raise Unauthenticated(f"there is no persona {name!r} any more", "ask for another token")
    return Identity(name, token=digest(token))


def shown_by(site: Site, scope: Scope) -> str:
    """Whose token or session a request brings, for the places it may take; empty for nobody's. It decides nothing else, so
    the files of tokens and policy are not looked at for it."""
    shown = given(scope, b"authorization")
    try:
        if shown:
            name = site.tokens.last_owner(_bearer(shown))
            return name if name == HUMAN or name in site.gate.config.personas else ""
        cookie = Request(scope).cookies.get(COOKIE, "")
        return HUMAN if cookie and site.sessions.find(cookie, site.tokens.of(HUMAN)) is not None else ""
    except ToolgateError:  # what is wrong with the tokens is said where they are needed
        return ""


async def persona_by_token(site: Site, scope: Scope) -> str | None:
    """For the MCP server: whose token this request brings; None for nobody's. Who may do what there it says itself."""
    request = Request(scope)
    shown = given(scope, b"authorization")
    try:
        return (await by_token(site, request, _bearer(shown))).name if shown else None
    except CallError:
        return None


def still(site: Site, who: Identity) -> bool:
    """Whether a long connection may go on: its session lives, its token was not replaced, its persona exists."""
    if who.session is not None:
        return site.sessions.find(who.session.id, site.tokens.of(HUMAN)) is not None
    return who.token == digest(site.tokens.of(who.name)) and (who.human or who.name in _personas(site))


def _personas(site: Site) -> Collection[str]:
    try:
        return site.gate.policy.personas
    except CallError:  # the policy cannot be read: calls will say so, with the reason
        return site.gate.config.personas


async def csrf(request: Request, session: ConsoleSession) -> None:
    """A page of somebody else can make a browser send the cookie, but cannot know this word."""
    said = request.headers.get(CSRF_HEADER, "") or (await form(request)).get(CSRF_FIELD, "")
    if not hmac.compare_digest(said.encode(), session.csrf.encode()):
        site = site_of(request)
        await site.refused(f"{request.method} {site.shown(request.url.path)} came without its CSRF token")
        raise NotAllowed("the CSRF token is missing or wrong", f"send it as {CSRF_HEADER}; reload the page")


async def form(request: Request) -> dict[str, str]:
    """The fields of a plain form; of a field given twice, the last."""
    return {name: values[-1] for name, values in (await fields(request)).items()}


async def fields(request: Request, most: int = 100) -> dict[str, list[str]]:
    """The same with all that was given; of more fields than `most` none is read."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return {}
    raw = await request.body()
    if len(raw) > MAX_FORM:
        raise TooLarge(f"the form has {len(raw):,} bytes, the limit is {MAX_FORM:,}", "send less")
    try:
        return parse_qs(raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=most)
    except ValueError:
        return {}


def given(scope: Scope, name: bytes) -> list[str]:
    """What a request says under this name, in small letters. Every request passes here: no object is made for it."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _bearer(shown: list[str]) -> str:
    scheme, _, token = shown[0].strip().partition(" ")
    return token.strip() if len(shown) == 1 and scheme.lower() == "bearer" else ""
