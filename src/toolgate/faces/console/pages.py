"""Pages that are there before anybody is logged in."""

from __future__ import annotations

from functools import cache

from jinja2 import Template
from starlette.responses import HTMLResponse

from toolgate.faces.console.templates import environment


@cache
def _login() -> Template:
    return environment().get_template("login.html")


def login_page(message: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(_login().render(message=message), status)
