"""Console pages of the garden: files of each user, a file with who wrote what, its versions, and bringing one back.

Reading is for the human alone, who runs the gate; bringing back is a call of theirs, recorded as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from toolgate.core.change import Change, FileChange
from toolgate.core.clock import SECOND
from toolgate.core.diff import render
from toolgate.core.errors import CallError, Code, NotFound
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.core.result import Result
from toolgate.features.garden.editor import brought_back
from toolgate.features.garden.grammar import MarkdownFile, Section
from toolgate.features.garden.lint import LintFinding
from toolgate.features.garden.page_html import HtmlBlock, html_blocks
from toolgate.features.garden.service import Garden, GardenVersion, LineOrigin
from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages

UNDER = "/garden"
MAX_REASON = 4000
MAX_FILES = 300
"""On one page: each is read, to say what lint finds."""
TRUST = {"person": "allowed", "agent": "plain", "outside": "asks"}
"""What a mark means: a person's word, an agent's, or something from outside."""


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """A block of the page and where its lines come from, the newest first."""

    html: Markup
    first: int
    last: int
    origins: list[LineOrigin]
    findings: list[LintFinding]
    tag: str = ""
    items: list[RenderedBlock] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RenderedSection:
    """A section, or what stands before the first; `pieces` hold its text."""

    heading: str
    level: int
    anchor: str
    hash: str
    first: int
    last: int
    lint: list[LintFinding]
    pieces: list[RenderedBlock]


def add(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    def garden() -> Garden:
        found: Garden = gate.feature("garden")
        return found

    @router.get("/garden")
    async def files(request: Request, who: Human) -> Response:
        persona = request.query_params.get("persona", "")[:64]
        user = request.query_params.get("user", "")[:64]
        if not user and persona in gate.policy.personas:
            user = gate.user_of(persona)
        after = request.query_params.get("after", "")[:4096]
        users, more = await _listed(garden(), user, after)
        return await console.page(
            request, who, "garden/files.html", users=users, user=user, after=after, more=more,
            mounts=garden().mounts,
        )  # fmt: skip

    @router.get("/garden/file/{path:path}")
    async def file(request: Request, who: Human, path: str) -> Response:
        shown = await _file(garden(), _place(garden(), path))
        return await console.page(request, who, "garden/file.html", under=UNDER, trust=TRUST, **shown)

    @router.get("/garden/history/{path:path}")
    async def history(request: Request, who: Human, path: str) -> Response:
        where = _place(garden(), path)
        versions = [(one, _micros(one)) for one in await garden().history(where)]
        return await console.page(
            request, who, "garden/history.html", under=UNDER, path=str(where), versions=versions
        )

    @router.get("/garden/version/{path:path}")
    async def version(request: Request, who: Human, path: str) -> Response:
        """One version: what it changed, and what bringing it back would."""
        where, ident = _place(garden(), path), request.query_params.get("of", "")[:80]
        return await _version(request, who, where, ident)

    async def _version(
        request: Request,
        who: Human,
        where: MountPath,
        ident: str,
        reason: str = "",
        done: Result | None = None,
    ) -> Response:
        asks = done is not None and done.error is not None and done.error.code is Code.PENDING
        return await console.page(
            request, who, "garden/version.html", under=UNDER, status=200 if done is None or asks else 409,
            path=str(where), reason=reason, trouble=done and done.error, question=done.data["question"] if done and asks else "",
            **await _compared(garden(), console, where, ident),
        )  # fmt: skip

    @router.post("/garden/restore/{path:path}")
    async def restore(request: Request, who: Human, path: str) -> Response:
        """A call of the human's. Where that asks, as for what the content scan finds, it is made again after the answer."""
        where, given = _place(garden(), path), await form(request)
        ident, reason = given.get("version", "")[:80], given.get("reason", "")[:MAX_REASON].strip()
        args = {"path": str(where), "version": ident, "reason": reason}
        done = await gate.call("garden.restore", args, persona=HUMAN, wait=False)
        if done.ok:
            return console.to(f"/garden/history/{where}")
        return await _version(request, who, where, ident, reason, done)


async def _listed(
    garden: Garden, user: str, after: str
) -> tuple[list[tuple[str, list[dict[str, Any]]]], str]:
    """Each user with their files, so many at a time; what is wrong with one is said of that one."""
    listed = [file for mount in garden.mounts for file in await garden.files(user, mount)]
    found = sorted((file for file in listed if file.path > after), key=lambda one: one.path)
    more = found[MAX_FILES - 1].path if len(found) > MAX_FILES else ""
    said: dict[str, list[LintFinding]] = {}
    for mount in garden.mounts:
        async for batch in garden.linted(user, mount, after, MAX_FILES):
            said |= batch.found
    users = []
    for name, own in groupby(found[:MAX_FILES], key=lambda one: one.user):
        rows = []
        for file in own:
            lint = said.get(file.path, [])
            problem = next((one.message for one in lint if one.rule == "unreadable"), "")
            blocked = any(one.severity == "blocked" for one in lint)
            rows.append({"file": file, "lint": len(lint), "blocked": blocked, "problem": problem})
        users.append((name, rows))
    return users, more


def _place(garden: Garden, path: str) -> MountPath:
    """An address names a file of a garden, or nothing that there is."""
    try:
        where = MountPath.parse(path)
        garden.editor.place(where)
    except CallError:
        raise NotFound("there is no such file in a garden", "Garden lists them") from None
    return where


async def _file(garden: Garden, path: MountPath) -> dict[str, Any]:
    where, _, document = await garden.read(path)
    findings = await garden.lint(where)
    try:
        origins, trouble = await garden.provenance(where), None
    except (
        CallError
    ) as error:  # a copy in history/, or one that cannot be traced: it can be read all the same
        origins, trouble = [], error
    stale = [one for one in origins if one.stale]
    return {
        "path": str(where), "identity": document.fields, "parts": _parts(document, origins, findings),
        "hash": document.hash(), "lint": findings, "stale": stale, "trouble": trouble, "traced": bool(origins),
    }  # fmt: skip


def _parts(
    document: MarkdownFile, origins: Sequence[LineOrigin], findings: Sequence[LintFinding]
) -> list[RenderedSection]:
    first = document.sections[0].start if document.sections else len(document.lines)
    parts = []
    if document.text(document.front, first).strip():
        pieces = _pieces(document, document.front, first, origins, findings)
        parts.append(RenderedSection("", 0, "", "", document.front + 1, first, [], pieces))
    return parts + [_part(document, section, origins, findings) for section in document.sections]


def _part(
    document: MarkdownFile, section: Section, origins: Sequence[LineOrigin], findings: Sequence[LintFinding]
) -> RenderedSection:
    mine = [one for one in findings if section.start < one.line <= section.end]
    return RenderedSection(
        section.heading, section.level, section.anchor, document.hash(section), section.start + 1, section.end, mine,
        _pieces(document, section.body, section.end, origins, mine),
    )  # fmt: skip


def _pieces(
    document: MarkdownFile,
    start: int,
    end: int,
    origins: Sequence[LineOrigin],
    findings: Sequence[LintFinding],
) -> list[RenderedBlock]:
    def piece(block: HtmlBlock) -> RenderedBlock:
        first, last = start + block.first + 1, max(start + block.end, start + block.first + 1)
        mine = origins[first - 1 : last] if not block.items else []
        newest = sorted(
            {one.event: one for one in mine if one.text.strip()}.values(), key=_event, reverse=True
        )
        told = [one for one in findings if first <= one.line <= last] if not block.items else []
        return RenderedBlock(
            block.html, first, last, newest, told, block.tag, [piece(item) for item in block.items]
        )

    return [piece(block) for block in html_blocks(document.text(start, end))]


def _event(origin: LineOrigin) -> int:
    return origin.event


async def _compared(garden: Garden, console: Pages, where: MountPath, ident: str) -> dict[str, Any]:
    """What a version changed, and what bringing it back would."""
    versions = await garden.history(where)
    at = next((at for at, one in enumerate(versions) if ident in (str(one.event), one.hash)), len(versions))
    chosen = versions[at] if at < len(versions) else None
    before = versions[at + 1] if at + 1 < len(versions) else None
    content, (_, now, _) = await garden.version(where, ident), await garden.read(where)
    earlier = await garden.version(where, str(before.event)) if before is not None else None
    return {
        "ident": ident, "version": chosen, "at": _micros(chosen) if chosen else 0, "before": before,
        "changed": await _diff(console, where, earlier, content) if chosen is not None else (),
        "back": await _diff(console, where, now, brought_back(content, now)), "same": now == content,
    }  # fmt: skip


async def _diff(console: Pages, where: MountPath, old: bytes | None, new: bytes) -> Sequence[Any]:
    if old == new:
        return ()
    return (await console.diff(render(Change((FileChange(where, old, new),))))).files


def _micros(version: GardenVersion) -> int:
    return round(datetime.fromisoformat(version.at).timestamp() * SECOND)
