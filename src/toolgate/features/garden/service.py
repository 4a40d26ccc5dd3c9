"""Garden: what `gate.feature("garden")` is. Users and their files, sections with hash and lint, who put each line there,
versions and what differs between them, and whether all of it is on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

from toolgate.core.change import content_hash
from toolgate.core.clock import iso
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotFound, Unavailable
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.core.result import Result
from toolgate.feature import FeatureContext
from toolgate.features.garden import lint as linting
from toolgate.features.garden.citations import Citations
from toolgate.features.garden.editor import Editor
from toolgate.features.garden.grammar import MarkdownFile, off_loop, read
from toolgate.features.garden.layout import is_copy_of, place_of
from toolgate.features.garden.lint import LintFinding
from toolgate.features.garden.lint_cache import LintBatch, LintCache, ScannedFile, known_by
from toolgate.features.garden.record import GardenRecord, Noticed
from toolgate.features.garden.rows import GardenEdit, chosen
from toolgate.features.garden.verifying import Tell, VerifiedFile, verified
from toolgate.workspace.tree import walk_tree

_AT_ONCE = 200
"""Files that are read in one go."""


@dataclass(frozen=True, slots=True)
class GardenFile:
    path: str
    user: str
    kind: str
    """overview, part, relationship or notes."""
    entity: str


@dataclass(frozen=True, slots=True)
class SectionView:
    anchor: str
    heading: str
    level: int
    start_line: int
    """From 1, as all lines here."""
    end_line: int
    hash: str
    words: int
    items: int
    text: str
    lint: list[LintFinding] = field(default_factory=list)

    def shape(self) -> dict[str, Any]:
        names = ("anchor", "heading", "start_line", "end_line", "hash", "words", "items")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class GardenView:
    path: str
    text: str
    hash: str
    front_matter: dict[str, str]
    sections: list[SectionView]
    """Those with an anchor."""
    lint: list[LintFinding]


@dataclass(frozen=True, slots=True)
class LineOrigin:
    line: int
    text: str
    event: int
    at: str
    who: str
    tool: str
    op: str
    rationale: str
    evidence: list[str]
    trust: str
    stale: str = ""
    """What is wrong with what the line cites."""


@dataclass(frozen=True, slots=True)
class GardenVersion:
    number: int
    event: int
    at: str
    who: str
    tool: str
    op: str
    section: str
    rationale: str
    override_rationale: str
    hash: str
    current: bool


class Garden:
    def __init__(self, context: FeatureContext) -> None:
        if context.files is None:
            raise Unavailable("this project is not trusted", "run `toolgate trust`")
        self._context, self._files = context, context.files
        self.editor = Editor(context, context.files)
        self.record = GardenRecord(context, self.editor)
        self._lint = LintCache(context, context.files)
        self._citations = Citations(context, context.files)

    @property
    def mounts(self) -> list[str]:
        return [
            mount.name for mount in self._files.mounts if self._files.mounts.kind(mount.name).name == "garden"
        ]

    def user_of(self, persona: str) -> str:
        """A human who does not say whose begins the garden that the default persona tends."""
        gate = self._context.gate
        return gate.user_of(gate.config.default_persona or persona if persona == HUMAN else persona)

    async def users(self, mount: str = "garden") -> list[str]:
        found = await self._files.run(
            lambda: list(self._walk(mount, "users", 1)) if mount in self.mounts else []
        )
        return sorted(entry.relative for entry in found if entry.kind == "directory")

    async def files(self, user: str = "", mount: str = "garden") -> list[GardenFile]:
        """All of a user's, or of everybody's."""
        return [
            GardenFile(str(file.path), file.place.user, file.place.kind, file.place.entity)
            for file in await self.scan(user, mount)
        ]

    async def read(self, path: MountPath | str) -> tuple[MountPath, bytes, MarkdownFile]:
        where = MountPath.parse(path)
        self.editor.place(where)
        content = await self._files.read(where)
        if content is None:
            raise NotFound(f"there is no {where.shown!r}", "`toolgate garden list` shows what is there")
        return where, content, await off_loop(content, lambda: read(content, where.shown))

    async def sections(self, path: MountPath | str) -> GardenView:
        where, content, document = await self.read(path)
        found = await self.lint(where)
        views = await off_loop(content, lambda: [
            SectionView(
                one.anchor, one.heading, one.level, one.start + 1, one.end, document.hash(one), linting.words(document, one),
                len(document.items(one)), document.text(one.body, one.end),
                [each for each in found if one.start < each.line <= one.end],
            )
            for one in document.sections
            if one.anchor
        ])  # fmt: skip
        text = document.text(document.front)
        return GardenView(where.shown, text, content_hash(content) or "", document.fields, views, found)

    async def lint(self, path: MountPath | str) -> list[LintFinding]:
        where, content, document = await self.read(path)
        place = self.editor.place(where)
        if place.kind == "history":
            return []
        there = self.editor.exists(where, place)
        return await off_loop(content, lambda: linting.check(document, place, there))

    async def linted(
        self, user: str = "", mount: str = "garden", after: str = "", most: int = 0
    ) -> AsyncIterator[LintBatch]:
        """What lint says of each file, as it is found; from one file on, and so many."""
        files = await self.scan(user, mount, statuses=True)
        there = frozenset((file.place.user, file.place.kind, file.place.entity) for file in files)
        chosen = [file for file in files if str(file.path) > after] if after else files
        async for batch in self._lint.all_of(chosen[: most or None], there):
            yield batch

    async def lint_all(self, user: str = "", mount: str = "garden") -> dict[str, list[LintFinding]]:
        """What lint says of each file."""
        return {path: said async for batch in self.linted(user, mount) for path, said in batch.found.items()}

    async def scan(self, user: str, mount: str, statuses: bool = False) -> list[ScannedFile]:
        def work() -> list[ScannedFile]:
            base, found = f"users/{user}" if user else "users", []
            for entry in self._walk(mount, base, 8):
                place = place_of(f"{base}/{entry.relative}") if entry.kind == "file" else None
                if place is not None and place.kind != "history":
                    status = known_by(entry.status()) if statuses else ""
                    found.append(ScannedFile(entry.path, place, status))
            return sorted(found, key=lambda file: file.path)

        return await self._files.run(work) if mount in self.mounts else []

    async def provenance(self, path: MountPath | str) -> list[LineOrigin]:
        """For each line who put it there. What a person edited outside the gate is noticed now, at the latest."""
        where, document, edits = await self._recorded(path)
        last, stale = edits[-1], {one["line"]: one["problem"] for one in await self.stale(where)}
        by = {edit.number: edit for edit in edits}
        return [
            _origin(number, line.rstrip("\r\n"), by[origin[0]], origin[1], stale.get(number, ""))
            for number, (line, origin) in enumerate(zip(document.lines, last.origins, strict=False), 1)
        ]

    async def history(self, path: MountPath | str) -> list[GardenVersion]:
        """Every version, the newest first."""
        _, _, edits = await self._recorded(path)
        return [
            GardenVersion(
                one.number, one.event, iso(one.at), one.who, one.tool, one.op, one.section_anchor, one.rationale,
                one.override_rationale, one.after_hash, one is edits[-1],
            )
            for one in reversed(edits)
        ]  # fmt: skip

    async def version(self, path: MountPath | str, ident: str) -> bytes:
        """The content of a version: by its event, its hash or its beginning, or the name of a copy in history/."""
        where = MountPath.parse(path)
        place = self.editor.place(where)
        await self.record.sync()
        edit = chosen(await self.record.edits(where), ident)
        content = await self.record.content(place.user, edit.after_hash) if edit is not None else None
        name = ident.rpartition("/")[2]
        if content is None and name.endswith(".md") and is_copy_of(name, where.relative):
            copy = MountPath(f"{where.mount}:{where.relative.rpartition('/')[0]}/history/{name}")
            found = await self._files.read(copy)
            if (content_hash(found) or "")[7:19] == name.split(".")[-2]:  # else somebody has altered it
                content = found
        if content is None:
            told = f"{where.shown} has no version {ident[:80]!r}"
            raise NotFound(told, "`toolgate garden history` lists them")
        return content

    async def diff(self, path: MountPath | str, old: str, new: str = "") -> str:
        """What differs between two versions; without `new`, between one and the file as it is."""
        where, content, _ = await self.read(path)
        before = await self.version(where, old)
        after = await self.version(where, new) if new else content
        old_lines, new_lines = (
            side.decode("utf-8", "replace").splitlines(keepends=True) for side in (before, after)
        )
        names = f"{where.shown} ({old})", f"{where.shown} ({new or 'now'})"
        return "".join(unified_diff(old_lines, new_lines, *names))

    async def restore(self, path: MountPath | str, version: str, reason: str = "") -> Result:
        """A human's: an earlier version comes back as a new edit, recorded as any other."""
        where = MountPath.parse(path)
        args = {"path": str(where), "version": version, "reason": reason}
        return await self._context.gate.call("garden.restore", args, persona=HUMAN)

    async def notice(
        self, user: str = "", mount: str = "garden", tell: Tell | None = None
    ) -> list[GardenEdit]:
        """Look at every file; what a person edited outside the gate is recorded as theirs."""
        files = await self.scan(user, mount)
        found: list[GardenEdit] = []
        for start in range(0, len(files), _AT_ONCE):
            some = [file.path for file in files[start : start + _AT_ONCE]]
            found += (await self.notice_these(some)).edits
            if tell is not None:
                tell(min(start + _AT_ONCE, len(files)), len(files))
        return found

    async def unrecorded(self, user: str = "", mount: str = "garden") -> list[str]:
        """Files that are not as their last version was; nothing is recorded."""
        await self.record.sync()
        known, found = await self.record.hashes(_below(user, mount)), []
        paths = [file.path for file in await self.scan(user, mount)]
        for start in range(0, len(paths), _AT_ONCE):
            some = paths[start : start + _AT_ONCE]
            now = zip(some, await self._files.read_many(some), strict=True)
            found += [str(path) for path, content in now if content_hash(content) != known.get(str(path))]
        return found

    async def notice_these(self, paths: Sequence[MountPath]) -> Noticed:
        contents = zip(paths, await self._files.read_many(paths), strict=True)
        return await self.record.notice({path: content for path, content in contents if content is not None})

    async def verify(
        self, user: str = "", mount: str = "garden", tell: Tell | None = None
    ) -> list[VerifiedFile]:
        """Whether every file is as the ledger says, by its hash; and the rows that say who wrote what, by their seals."""
        paths = [file.path for file in await self.scan(user, mount)]
        return await verified(self.record, self._files, paths, _below(user, mount), tell)

    async def stale(self, path: MountPath | str, persona: str = HUMAN) -> list[dict[str, Any]]:
        """Lines that cite a file, a line of it or an event that is gone or, where a hash was given, changed. Nothing is said of
        what this persona may not read."""
        return await self._citations.stale((await self.read(path))[2], persona)

    async def _recorded(self, path: MountPath | str) -> tuple[MountPath, MarkdownFile, list[GardenEdit]]:
        """A file and its versions, the last of which is what the file is: whoever edits it now is waited for."""
        for pause in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
            await asyncio.sleep(pause)
            where, content, document = await self.read(path)
            await self.record.notice({where: content})
            found = await self.record.edits(where)
            if not found and self.editor.place(where).kind == "history":
                raise InvalidArgs(f"{where.shown} is a copy, which has no versions", "name the file itself")
            if found and found[-1].after_hash == content_hash(content):
                return where, document, found
        raise Conflict(
            f"{where.shown} is being edited", "try again; `toolgate doctor` names calls that have not ended"
        )

    def _walk(self, mount: str, base: str, depth: int) -> Iterator[Any]:
        try:
            yield from walk_tree(self._files.mounts, MountPath(f"{mount}:{base}"), depth=depth)
        except NotFound:
            return


def _below(user: str, mount: str) -> str:
    return f"{mount}:users/{user}/" if user else f"{mount}:users/"


def _origin(number: int, text: str, edit: GardenEdit, trust: str, stale: str) -> LineOrigin:
    return LineOrigin(
        number, text, edit.event, iso(edit.at), edit.who, edit.tool, edit.op, edit.rationale, edit.evidence_refs, trust, stale
    )  # fmt: skip


async def remarks(context: FeatureContext, path: MountPath, persona: str) -> list[dict[str, Any]]:
    """Whether what the lines of a file cite is still so, for whoever reads it with `fs.read`."""
    garden: Garden = context.gate.feature("garden")
    with suppress(CallError):  # a directory, or no text: `fs.read` says so
        return await garden.stale(path, persona)
    return []


def open_garden(context: FeatureContext) -> Garden:
    return Garden(context)
