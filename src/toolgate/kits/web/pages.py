"""Pages of the console, as a feature adds them: a router, and this interface of the Console that draws them.

A feature's page is a function of both that adds routes: `Page("/diary", "Diary", "diary.pages:add")`. Its templates extend
`base.html` and are called `<feature>/<file>`. Every route is below the console's own path and needs the human's session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from toolgate.kits.web.auth import Identity

if TYPE_CHECKING:
    from toolgate.facade import Gate


class Diff(NamedTuple):
    """A unified diff for the macro `diff` of macros.html, or line by line for `numbered` where it is none."""

    files: Sequence[Any]
    plain: Sequence[Markup]


class Pages(Protocol):
    gate: Gate

    @property
    def now(self) -> int:
        """By the ledger's clock, in microseconds."""
        ...

    async def page(
        self, request: Request, who: Identity, name: str, *, status: int = 200, under: str = "", **data: Any
    ) -> Response:
        """A whole page from a template, with the frame around it; `under` is the entry of the navigation it belongs to."""
        ...

    async def part(self, who: Identity, name: str, *, status: int = 200, **data: Any) -> Response:
        """A piece of a page, for the page that is there already."""
        ...

    def to(self, path: str, **query: str) -> Response:
        """Go on to another page of the console."""
        ...

    async def diff(self, text: str) -> Diff:
        """With colours, and with everything in it visible and escaped."""
        ...


def is_part(request: Request) -> bool:
    """Whether the page's own script asks, which wants a piece and not a whole page."""
    return request.headers.get("HX-Request") == "true"
