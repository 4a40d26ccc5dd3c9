"""Console: what the pages of one server share (templates, colours, the last verification), and how a page is answered."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import BaseLoader, DictLoader, FileSystemLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolgate.core.apart import apart
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Code, InvalidArgs, ToolgateError
from toolgate.core.names import HUMAN
from toolgate.core.ports import Question
from toolgate.facade import Gate
from toolgate.faces.console.diff_view import Painter, drawn
from toolgate.faces.console.markup import draw
from toolgate.faces.console.question import deed
from toolgate.faces.console.templates import environment, theme
from toolgate.feature import Feature, Page
from toolgate.kits import diffs, pieces
from toolgate.kits.web.answers import STATUS
from toolgate.kits.web.auth import Identity, shown_by
from toolgate.kits.web.pages import Diff, is_part
from toolgate.kits.web.site import Site
from toolgate.ledger.verify import Report

# What no page can show, page by page: and how far each session has come, as nobody approves what they have
# not been shown.

LEAF_PIECES = 2000
LEAF_ROOM = 200_000
"""Characters of HTML on one page, and pieces of lines."""
_REMEMBERED = 256


@dataclass(frozen=True)
class Leaf:
    """One page of it."""

    parts: list[tuple[str, list[tuple[int, Markup]]]]
    """By argument; a line's number, or 0 for the rest of one that is folded."""
    start: int
    end: int
    total: int


class ReadingProgress:
    """How far each session has read each question, from its beginning on without a gap."""

    def __init__(self) -> None:
        self._reach: OrderedDict[tuple[str, str], int] = OrderedDict()

    def took(self, session: str, digest: str, start: int, end: int) -> None:
        key = session, digest
        if start <= self._reach.get(key, 0):
            self._reach[key] = max(end, self._reach.get(key, 0))
            self._reach.move_to_end(key)
        while len(self._reach) > _REMEMBERED:
            self._reach.popitem(last=False)

    def read(self, session: str, question: Question) -> bool:
        reach = self._reach.get((session, question.digest), 0)
        return reach > 0 and reach >= pieces.total(question)


def leaf(question: Question, start: int) -> Leaf:
    parts: list[tuple[str, list[tuple[int, Markup]]]] = []
    room, end = LEAF_ROOM, start
    for piece in pieces.some_of(pieces.all_of(question), start, LEAF_PIECES):
        line = draw(piece.text, ())
        room -= len(line) + 60
        if room < 0 and end > start:
            break
        if not parts or parts[-1][0] != piece.part:
            parts.append((piece.part, []))
        parts[-1][1].append((piece.number, line))
        end += 1
    return Leaf(parts, start, end, pieces.total(question))


AUTOMATIC = 50_000
"""Up to so many events a page may have the chain verified by itself."""
AT_ONCE = 2_000
"""Up to so many before the page is shown."""
FRESH = 600.0


class NavItem(NamedTuple):
    path: str
    title: str
    icon: str
    more: str = ""
    """The rest of the title, where there is room for it."""


_OWN_PAGES = (
    NavItem("/", "Inbox", "M3 11l2-7h10l2 7v5H3zM3 11h4l1 2h4l1-2h4"),
    NavItem("/activity", "Activity", "M2 10h4l2-6 4 12 2-6h4"),
    NavItem("/ledger", "Ledger", "M5 3h10v14H5zM8 7h4M8 10h4M8 13h2"),
    NavItem(
        "/tools",
        "Tools",
        "M10 2l6 2.500V9c0 4-2.500 7-6 9-3.500-2-6-5-6-9V4.500zM7.500 10l2 2 3.500-4",
        "& policy",
    ),
)
_PLAIN_ICON = "M4 4h12v12H4z"


@dataclass
class Verified:
    """The last verification of this server."""

    report: Report | None = None
    at: int = 0
    running: bool = False


@dataclass
class Frame:
    project: str
    database: str
    events: int
    open: int
    running: int
    personas: list[str]
    paused: dict[str, str]
    chain: Verified
    now: int
    trouble: str = ""
    """Why the policy cannot be read, if it cannot."""


async def frame(gate: Gate, chain: Verified) -> Frame:
    state = await gate.ledger_state()
    paused, now = await gate.paused(), gate.now
    trouble = ""
    try:
        personas = sorted(gate.policy.personas)
    except CallError as error:
        personas, trouble = sorted(gate.config.personas), error.message
    return Frame(
        gate.root.name or str(gate.root), str(state["backend"]), int(state["events"]), int(state["open_questions"]),
        int(state["running"]), personas, paused, chain, now, trouble,
    )  # fmt: skip


class Console:
    def __init__(self, site: Site, features: Iterable[Feature] = ()) -> None:
        self.site = site
        self.brought = [(feature, page) for feature in features for page in feature.pages]
        """Pages of features, each with the feature."""
        self.gate = site.gate
        self.painter = Painter()
        self.verified = Verified()
        self.reading = ReadingProgress()
        self.templates = environment(_templates_of(self.brought))
        self.nav = (*_OWN_PAGES, *(_entry(page) for _, page in self.brought if page.title))
        self._titles: dict[str, str] = {}
        self._verifying: asyncio.Task[None] | None = None

    @property
    def now(self) -> int:
        return self.gate.now

    async def page(
        self, request: Request, who: Identity, name: str, *, status: int = 200, under: str = "", **data: Any
    ) -> Response:
        """A whole page, with the frame around it; `under` is the entry of the navigation it belongs to."""
        around = await frame(self.gate, self.verified)
        await self._verify_sometimes(around.events)
        path = request.url.path.removeprefix(self.site.base)
        given = {
            "frame": around, "now": around.now, "theme": theme(request), "nav": self.nav, "path": path,
            "under": under or path, "persona": request.query_params.get("persona", "")[:64],
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

    async def diff(self, text: str) -> Diff:
        files = await drawn(await apart(diffs.parse, text), self.painter)
        return Diff(files, () if files else [draw(line, ()) for line in text.split("\n")])

    def title(self, question: Question) -> str:
        """What it wants, worked out once: a change may be long, and the list is drawn often."""
        if question.id not in self._titles:
            self._titles[question.id] = deed(
                question.tool, diffs.parse(question.preview) if question.preview else [], question.args
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


def _entry(page: Page) -> NavItem:
    return NavItem(page.path, page.title, page.icon or _PLAIN_ICON)


def _templates_of(brought: Iterable[tuple[Feature, Page]]) -> dict[str, BaseLoader]:
    """By feature: `TEMPLATES` of the module that adds its pages, or the directory `templates` of its package. A template
    is code: beside a module that is in no package it could be a file that a tool may write, so none is read there."""
    found: dict[str, BaseLoader] = {}
    for feature, page in brought:
        module = import_module(page.adds.partition(":")[0])
        if hasattr(module, "TEMPLATES"):
            found[feature.name] = DictLoader(module.TEMPLATES)
        elif module.__package__ and module.__file__:
            found[feature.name] = FileSystemLoader(Path(module.__file__).parent / "templates")
    return found


def route_class(console: Console) -> type[APIRoute]:
    """Routes whose errors are pages for people: the same message and fix as everywhere."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handled(request: Request) -> Response:
                try:
                    return await handle(request)
                except (ToolgateError, RequestValidationError) as error:
                    if not _for_the_human(console, request):
                        raise  # a program: it gets the same in JSON; somebody else sees nothing of the project
                    return await problem(console, request, _told(error))

            return handled

    return PageRoute


def _for_the_human(console: Console, request: Request) -> bool:
    page = is_part(request) or "text/html" in request.headers.get("accept", "")
    return page and shown_by(console.site, request.scope) == HUMAN


def _told(error: ToolgateError | RequestValidationError) -> ToolgateError:
    if isinstance(error, ToolgateError):
        return error
    wrong = next(iter(error.errors()), {"loc": ("address",), "msg": "it cannot be read"})
    where = ".".join(str(part)[:100] for part in wrong["loc"])
    return InvalidArgs(f"{where}: {str(wrong['msg'])[:200]}", "check the address, or go back")


async def problem(console: Console, request: Request, error: ToolgateError) -> Response:
    code = error.code if isinstance(error, CallError) else Code.UNAVAILABLE
    status = STATUS[code]
    who = Identity(HUMAN)
    if is_part(request):
        return await console.part(who, "part_problem.html", status=status, error=error, code=code.value)
    return await console.page(request, who, "problem.html", status=status, error=error, code=code.value)
