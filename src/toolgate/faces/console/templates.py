"""Templates of the console, what they may call, and its style and scripts; and the pages that are there before anybody is
logged in.

Whatever a template prints is made visible and escaped, without being asked to. Style, scripts and their licences are known
files from memory, under a name that changes with their content: they hold nothing private, and no path of a request is ever
opened.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
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
from starlette.responses import HTMLResponse, Response

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import Code, NotFound
from toolgate.faces.console.markup import finalize, marked, plural, ticked
from toolgate.kits.words import span

STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
asset_router = APIRouter(include_in_schema=False)
THEME = "toolgate_theme"
_TITLES = {404: "There is no such page", 405: "That is no page to open"}


def _sent(path: Path) -> bytes:
    """Style without comments and the blanks around its signs, which only whoever writes it needs."""
    content = path.read_bytes()
    if path.suffix != ".css":
        return content
    return re.sub(rb"\s*([{};])\s*", rb"\1", re.sub(rb"/\*.*?\*/", b"", content, flags=re.S)).strip()


ASSETS: dict[str, tuple[bytes, str]] = {
    path.relative_to(STATIC).as_posix(): (_sent(path), _TYPES[path.suffix])
    for path in sorted(STATIC.rglob("*"))
    if path.suffix in _TYPES
}
ASSETS_VERSION = hashlib.sha256(b"".join(content for content, _ in ASSETS.values())).hexdigest()[:12]
COMPRESSED = {name: gzip.compress(content, 9, mtime=0) for name, (content, _) in ASSETS.items()}
"""Nothing secret is in them, so nothing can be learned from how well they compress."""


def asset_url(name: str) -> str:
    assert name in ASSETS, name
    return f"/assets/{ASSETS_VERSION}/{name}"


@asset_router.get("/assets/{version}/{name:path}")
async def asset(request: Request, version: str, name: str) -> Response:
    if version != ASSETS_VERSION or name not in ASSETS:
        raise NotFound("there is no such asset", "reload the page")
    content, kind = ASSETS[name]
    headers = dict(_FOR_EVER)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = COMPRESSED[name], "gzip"
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)


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
        "asset": asset_url,
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
