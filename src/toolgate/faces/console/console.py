"""What the pages of one server share: templates, colours, the last verification; and how a page is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolgate.core.apart import apart
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Code, ToolgateError
from toolgate.core.ports import Question
from toolgate.faces.console.colours import Painter
from toolgate.faces.console.frame import AT_ONCE, AUTOMATIC, FRESH, Verified, frame
from toolgate.faces.console.pages import theme
from toolgate.faces.console.question import deed
from toolgate.faces.console.reading import Reading
from toolgate.faces.console.templates import environment
from toolgate.faces.http.auth import Identity
from toolgate.faces.http.problems import STATUS, Unauthenticated
from toolgate.faces.http.site import Site
from toolgate.kits.diffs import parse


class Console:
    def __init__(self, site: Site) -> None:
        self.site = site
        self.gate = site.gate
        self.painter = Painter()
        self.verified = Verified()
        self.reading = Reading()
        self.templates = environment()
        self._titles: dict[str, str] = {}
        self._verifying: asyncio.Task[None] | None = None

    @property
    def now(self) -> int:
        return self.gate.services.ledger.clock.now()

    async def page(
        self, request: Request, who: Identity, name: str, *, status: int = 200, **data: Any
    ) -> Response:
        """A whole page, with the frame around it."""
        around = await frame(self.gate, self.verified)
        await self._verify_sometimes(around.events)
        given = {
            "frame": around, "now": around.now, "theme": theme(request),
            "path": request.url.path.removeprefix(self.site.base), "persona": request.query_params.get("persona", "")[:64],
        }  # fmt: skip
        return HTMLResponse(await apart(self._render, name, who, given | data), status)

    async def part(self, who: Identity, name: str, *, status: int = 200, **data: Any) -> Response:
        """A piece of a page, for the page that is there already."""
        return HTMLResponse(await apart(self._render, name, who, {"now": self.now} | data), status)

    def _render(self, name: str, who: Identity, data: dict[str, Any]) -> str:
        csrf = who.session.csrf if who.session is not None else ""
        return self.templates.get_template(name).render(base=self.site.base, csrf=csrf, **data)

    def url(self, path: str, **query: str) -> str:
        asked = urlencode({name: value for name, value in query.items() if value})
        return f"{self.site.base}{path}" + (f"?{asked}" if asked else "")

    def to(self, path: str, **query: str) -> Response:
        return RedirectResponse(self.url(path, **query), 303)

    def title(self, question: Question) -> str:
        """What it wants, worked out once: a change may be long, and the list is drawn often."""
        if question.id not in self._titles:
            self._titles[question.id] = deed(
                question.tool, parse(question.preview) if question.preview else []
            )
        return self._titles[question.id]

    def forget_titles(self, but: set[str]) -> None:
        self._titles = {ident: title for ident, title in self._titles.items() if ident in but}

    # --- the chain ----------------------------------------------------------------------------------------

    async def _verify_sometimes(self, events: int) -> None:
        """A short chain before the page is shown, a longer one beside it, a long one when somebody asks."""
        stale = self.now - self.verified.at > FRESH * SECOND
        if stale and events <= AUTOMATIC and self._verifying is None:
            self._verifying = asyncio.create_task(self.verify())
            if events <= AT_ONCE:
                await asyncio.wait({self._verifying})

    async def verify(self) -> None:
        self.verified.running = True
        try:
            report = await self.gate.verify()
            self.verified.report, self.verified.at = report, self.now
        except CallError:
            pass  # the ledger was closed meanwhile; the next page tries again
        finally:
            self.verified.running, self._verifying = False, None

    async def close(self) -> None:
        if self._verifying is not None:
            self._verifying.cancel()
            await asyncio.gather(self._verifying, return_exceptions=True)
        await asyncio.to_thread(self.painter.close)


def is_part(request: Request) -> bool:
    """Whether the page's own script asks, which wants a piece and not a whole page."""
    return request.headers.get("HX-Request") == "true"


def route_class(console: Console) -> type[APIRoute]:
    """Routes whose errors are pages for people: the same message and fix as everywhere."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handled(request: Request) -> Response:
                try:
                    return await handle(request)
                except Unauthenticated:
                    raise
                except ToolgateError as error:
                    if not is_part(request) and "text/html" not in request.headers.get("accept", ""):
                        raise  # a program: it gets the same in JSON
                    return await problem(console, request, error)

            return handled

    return PageRoute


async def problem(console: Console, request: Request, error: ToolgateError) -> Response:
    code = error.code if isinstance(error, CallError) else Code.UNAVAILABLE
    status = STATUS[code]
    who = Identity("human")
    if is_part(request):
        return await console.part(who, "part_problem.html", status=status, error=error, code=code.value)
    return await console.page(request, who, "problem.html", status=status, error=error, code=code.value)
