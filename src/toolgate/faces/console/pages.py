"""Pages that are there before anybody is logged in, and show nothing of the project."""

from __future__ import annotations

from functools import cache

from fastapi import Request
from jinja2 import Template
from starlette.responses import HTMLResponse

from toolgate.core.errors import Code
from toolgate.faces.console.templates import environment

THEME = "toolgate_theme"
_TITLES = {404: "There is no such page", 405: "That is no page to open"}


@cache
def _template(name: str) -> Template:
    return environment().get_template(name)


def theme(request: Request) -> str:
    chosen = request.cookies.get(THEME, "")
    return chosen if chosen in ("light", "dark") else "auto"


def login_page(message: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(_template("login.html").render(message=message), status)


def lost_page(request: Request, base: str, code: Code, message: str, status: int) -> HTMLResponse:
    """An address that leads nowhere, with the way back: into the console, or to its door."""
    path = request.url.path
    inside = path.startswith(f"{base}/")
    fix = (
        "Check the address, or go back."
        if inside
        else "The console has another address after each start: open the one that `toolgate up` printed, or log in."
    )
    page = _template("lost.html").render(
        theme=theme(request), title=_TITLES.get(status, message), address=path.removeprefix(base)[:200], fix=fix, code=code.value,
        back=f"{base}/" if inside else "/", where="Inbox" if inside else "Log in",
    )  # fmt: skip
    return HTMLResponse(page, status)
