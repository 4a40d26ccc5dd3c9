"""Templates of the console and what they may call; and the pages that are there before anybody is logged in.

Whatever a template prints is made visible and escaped, without being asked to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    Template,
)
from markupsafe import Markup
from starlette.responses import HTMLResponse

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import Code
from toolgate.faces.console import assets
from toolgate.faces.console.markup import finalize, marked, plural, ticked
from toolgate.kits.words import span

THEME = "toolgate_theme"
_TITLES = {404: "There is no such page", 405: "That is no page to open"}


def environment(brought: Mapping[str, BaseLoader] | None = None) -> Environment:
    """With the templates that features bring, by feature; none of them can take the place of one of ours."""
    loader = ChoiceLoader(
        [
            FileSystemLoader(Path(__file__).parent / "templates"),
            PrefixLoader(brought or {}),
        ]
    )
    made = Environment(
        loader=loader, autoescape=True, finalize=finalize,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "v": marked,
        "lines": lambda text: marked(str(text), keep_lines=True),
        "part": _part,
        "ticked": ticked,
    }
    made.globals |= {
        "asset": assets.url,
        "plural": plural,
        "iso": iso,
        "ago": ago,
        "until": until,
        "took": took,
    }
    return made


def _part(value: Any) -> str:
    """As one part of a path."""
    return quote(str(value), safe="")


def ago(at: int, now: int) -> Markup:
    """Relative, with the exact time on hover and for machines."""
    passed = now - at
    words = "just now" if passed < 5 * SECOND else f"{span(passed)} ago"
    return Markup('<time datetime="{0}" title="{0}" data-at="{1}">{2}</time>').format(
        iso(at), at // 1000, words
    )


def until(at: int, now: int) -> Markup:
    left = at - now
    words = f"{span(left)} left" if left > 0 else "expired"
    return Markup('<time datetime="{0}" title="{0}" data-until="{1}">{2}</time>').format(
        iso(at), at // 1000, words
    )


def took(micros: int) -> str:
    if micros < 1000:
        return f"{micros} µs" if micros else ""
    return f"{micros / 1000:.0f} ms" if micros < SECOND else f"{micros / SECOND:.1f} s"


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
