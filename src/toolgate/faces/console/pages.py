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


def lost_page(request: Request, code: Code, message: str, status: int) -> HTMLResponse:
    """An address outside the console that leads nowhere, with the way to its door."""
    page = _template("lost.html").render(
        theme=theme(request),
        title=_TITLES.get(status, message),
        address=request.url.path[:200],
        code=code.value,
    )
    return HTMLResponse(page, status)
