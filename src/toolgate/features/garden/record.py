"""Record of a garden: who put each line there, from the ledger's events; and what nobody recorded.

Every version of a file is a row that says for each of its lines which version brought it, and how far it is trusted. What
an edit puts in the place of lines that it removes is trusted no more than those: a summary never raises what it sums up.
A version between two events that no event made is a person's own edit: it is noted as theirs.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgate.core.change import DIRECTORY, content_hash
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, LedgerBroken
from toolgate.core.event import Noted
from toolgate.core.paths import MountPath
from toolgate.features.garden import guard, lint
from toolgate.features.garden.grammar import MarkdownFile, read
from toolgate.features.garden.layout import Place, place_of
from toolgate.features.garden.ledger_course import (
    PERSON_EDIT,
    LedgerCourse,
    op_of,
    person_edit,
    refs_of,
    trust_of,
)
from toolgate.features.garden.rows import (
    INSERT,
    PLACES,
    GardenEdit,
    believed,
    chosen,
    common_start,
    resting,
    traced,
)
from toolgate.ledger.effects import Effect
from toolgate.ledger.ledger import View, Work
from toolgate.storage.port import Filter, Row
from toolgate.workspace.staged import acquire

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext
    from toolgate.features.garden.editor import Editor

REPEATS = 48 * 3600 * SECOND
"""How long an edit with the same words and the same hash before it is taken for the same edit."""
_AT_ONCE = 100


class Noticed(NamedTuple):
    """What a look at files found."""

    edits: list[GardenEdit]
    left: frozenset[MountPath]
    """Files that somebody is changing: to be looked at again."""


class GardenRecord:
    def __init__(self, context: FeatureContext, editor: Editor) -> None:
        self._context, self._editor = context, editor
        self.ledger = context.services.ledger
        self.mac = editor.mac
        self._turn = asyncio.Lock()

    async def edits(self, path: MountPath) -> list[GardenEdit]:
        """Every version of a file, oldest first."""
        tables = await self._context.tables()
        rows = await tables.fetch("SELECT * FROM garden_edits WHERE path = ? ORDER BY number", str(path))
        return [believed(self.ledger.keys, row) for row in rows]

    async def latest(self, below: str) -> dict[str, dict[str, Any]]:
        """The last row of every file whose path begins so, as it stands in the table."""
        return await self._last("e.*", below)

    async def hashes(self, below: str) -> dict[str, str]:
        """Of the last version of every file whose path begins so."""
        found = await self._last("e.path, e.after_hash", below)
        return {path: row["after_hash"] for path, row in found.items()}

    async def _last(self, columns: str, below: str) -> dict[str, dict[str, Any]]:
        tables = await self._context.tables()
        rows = await tables.fetch(
            f"""SELECT {columns} FROM garden_edits e JOIN (
                SELECT path, MAX(number) AS number FROM garden_edits WHERE substr(path, 1, ?) = ? GROUP BY path
            ) m ON e.path = m.path AND e.number = m.number""",
            len(below), below,
        )  # fmt: skip
        return {row["path"]: row for row in rows}

    async def last(self, path: MountPath) -> GardenEdit | None:
        tables = await self._context.tables()
        rows = await tables.fetch(
            "SELECT * FROM garden_edits WHERE path = ? ORDER BY number DESC LIMIT 1", str(path)
        )
        return believed(self.ledger.keys, rows[0]) if rows else None

    async def content(self, user: str, digest: str) -> bytes | None:
        tables = await self._context.tables()
        rows = await tables.fetch(
            "SELECT content FROM garden_versions WHERE user_id = ? AND hash = ?", user, digest
        )
        if rows and content_hash(kept := bytes(rows[0]["content"])) == digest:
            return kept
        with suppress(CallError):
            return self._editor.files.images.get(digest)
        return None

    async def repeated(self, path: MountPath, tool: str, said: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the same edit of this file gave, if one was made in the last 48 hours and not undone since."""
        await self.sync()
        since = self.ledger.clock.now() - REPEATS
        for edit in reversed(await self.edits(path)):
            if edit.at < since or edit.tool == guard.UNDO:
                return None
            if edit.tool != tool:
                continue
            rows = await self.ledger.backend.rows(Filter(call=edit.call))
            bodies = {row.kind: json.loads(row.body) for row in rows}
            args = bodies.get("started", {}).get("args") or {}
            result = bodies.get("committed", {}).get("result")
            if isinstance(result, dict) and all(args.get(name) == value for name, value in said.items()):
                return result
        return None

    async def sync(self) -> None:
        """Take over what the ledger says since the last time."""
        async with self._alone():
            await self._sync()

    async def _sync(self) -> LedgerCourse:
        tables = await self._context.tables()
        seen = await tables.fetch("SELECT event FROM garden_seen WHERE id = 1")
        course = LedgerCourse(self.ledger, seen[0]["event"] if seen else 0)
        async for step in course.onwards():
            with suppress(LedgerBroken):  # a forged row is left for `verify` to name and `remake` to replace
                await self._take_in(step)
        await tables.execute(
            "INSERT INTO garden_seen (id, event) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET event = excluded.event",
            course.settled,
        )
        return course

    async def _take_in(self, step: Effect | Row, only: frozenset[str] | None = None) -> None:
        if isinstance(step, Row):
            path, _, _ = person_edit(step)
            place = self.place(MountPath(path)) if path else None
            if place is not None and (only is None or path in only):
                await self._take_over_note(MountPath(path), place, step)
            return
        for entry in step.manifest:
            path = entry["path"]
            place = self.place(MountPath(path)) if only is None or path in only else None
            if place is not None and DIRECTORY not in (entry["before"], entry["after"]):
                await self._take_over(MountPath(path), place, step, entry)

    async def remake(self, paths: Sequence[str]) -> None:
        """The rows of these files again, from the ledger: those that are there were not written by the garden."""
        tables = await self._context.tables()
        async with self._alone():
            for path in paths:
                await tables.execute("DELETE FROM garden_edits WHERE path = ?", path)
            async for step in LedgerCourse(self.ledger).onwards():
                await self._take_in(step, frozenset(paths))

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One process of a project at a time, so that an edit is noticed once."""
        async with self._turn:
            lock = self._context.directory / "garden.lock"
            handle = await self._editor.files.run(lambda: acquire(lock))
            try:
                yield
            finally:
                os.close(handle)

    def place(self, path: MountPath) -> Place | None:
        """Of a file whose versions are recorded; None for copies and everything else."""
        if self._editor.files.mounts.kind(path.mount).name != "garden":
            return None
        found = place_of(path.relative)
        return found if found is not None and found.kind != "history" else None

    async def notice(self, contents: Mapping[MountPath, bytes]) -> Noticed:
        """Files that are not as their last version was: people have edited them outside the gate, and it is recorded as
        theirs. What a call is changing is left alone, and so is what is no longer as it was read before the ledger was."""
        async with self._alone():
            course = await self._sync()
            busy, doubted = course.busy, course.doubted
            known = await self.hashes(common_start(list(contents)))
            changed = [
                path
                for path, content in contents.items()
                if str(path) not in busy
                and known.get(str(path)) != (digest := content_hash(content))
                and (str(path), digest) not in doubted
                and self.place(path) is not None
            ]
            edits: list[GardenEdit] = []
            left = {path for path in contents if str(path) in busy}
            for start in range(0, len(changed), _AT_ONCE):
                some = changed[start : start + _AT_ONCE]
                now = await self._editor.files.read_many(some)
                steady = [path for path, content in zip(some, now, strict=True) if content == contents[path]]
                edits += await self._people([(path, contents[path], str(path) in known) for path in steady])
                left.update(set(some) - set(steady))
            return Noticed(edits, frozenset(left))

    async def _take_over(
        self, path: MountPath, place: Place, effect: Effect, entry: Mapping[str, Any]
    ) -> None:
        tables = await self._context.tables()
        for _ in range(5):  # another process may be at it too
            if await tables.fetch(
                "SELECT event FROM garden_edits WHERE path = ? AND event = ?", str(path), effect.event
            ):
                return
            last = await self.last(path)
            if entry["before"] is not None and (last is None or last.after_hash != entry["before"]):
                before = await self.content(place.user, entry["before"])
                if before is not None:
                    await self._people([(path, before, last is not None)])
                    last = await self.last(path)
            after = await self.content(place.user, entry["after"])
            trust, refs = trust_of(effect), refs_of(effect)
            back = await self._brought_back(path, place, entry["after"], effect) if trust == "person" else []
            made = await self._made(path, place, last, after, entry["after"], trust, back, refs)
            if await self._insert([(_from_effect(made, effect), after)]):
                return

    async def _take_over_note(self, path: MountPath, place: Place, row: Row) -> None:
        """A person's edit that another process noted, and did not live to keep."""
        tables = await self._context.tables()
        _, before, after = person_edit(row)
        if await tables.fetch(
            "SELECT event FROM garden_edits WHERE path = ? AND event = ?", str(path), row.seq
        ):
            return
        last, content = await self.last(path), await self.content(place.user, after)
        if content is None:
            (there,) = await self._editor.files.read_many([path])
            content = there if content_hash(there) == after else None
        if content is not None and before == (last.after_hash if last else ""):
            edit = await self._by_person(path, content)
            await self._insert([(replace(edit, event=row.seq, at=row.at), content)])

    async def _people(self, changed: Sequence[tuple[MountPath, bytes, bool]]) -> list[GardenEdit]:
        """Noted in the ledger first: what stands in the tables alone is worth nothing."""
        edits: list[tuple[GardenEdit, bytes]] = []
        for path, content, known in changed:
            with suppress(LedgerBroken):  # `verify` names it; it keeps nobody else's edit from being noticed
                edits.append((await self._by_person(path, content, known), content))

        def decide(view: View) -> None:
            for edit, _ in edits:
                view.emit(_noted(edit))

        work = Work(decide)
        if edits:
            await self.ledger.do(work)
        pairs = zip(edits, work.rows, strict=True)
        noted = [(replace(edit, event=row.seq, at=row.at), content) for (edit, content), row in pairs]
        await self._insert(noted)
        return [edit for edit, _ in noted]

    async def _by_person(self, path: MountPath, content: bytes, known: bool = True) -> GardenEdit:
        """`known`: it has versions."""
        place, last = self._editor.place(path), await self.last(path) if known else None
        digest = content_hash(content) or ""
        back = await self._brought_back(path, place, digest) if last else []
        made = await self._made(path, place, last, content, digest, "person", back)
        said = [*made["lint"], *(await self._broken(path, last, content) if last else ())]
        return GardenEdit(**made | {"op": PERSON_EDIT, "rationale": "edited outside the gate", "lint": said})

    async def _broken(self, path: MountPath, last: GardenEdit, content: bytes) -> list[str]:
        """The rule that a person's edit breaks. What was there before breaks nothing that it did not break then."""
        tables, before = await self._context.tables(), await self.content(last.user_id, last.after_hash)
        back = "SELECT number FROM garden_edits WHERE path = ? AND after_hash = ?"
        if before is None or await tables.fetch(back, str(path), content_hash(content)):
            return []
        return guard.broken_by(path, before, content)

    async def _brought_back(
        self, path: MountPath, place: Place, digest: str, effect: Effect | None = None
    ) -> Sequence[tuple[str, tuple[int, str]]]:
        """The lines of the earlier version that somebody has brought back, with their origins."""
        if effect is not None and effect.started.tool == "garden.restore":
            found = chosen(await self.edits(path), str((effect.body.get("args") or {}).get("version", "")))
        else:
            tables = await self._context.tables()
            same = "SELECT * FROM garden_edits WHERE path = ? AND after_hash = ? ORDER BY number DESC LIMIT 1"
            rows = await tables.fetch(same, str(path), digest)
            found = believed(self.ledger.keys, rows[0]) if rows else None
        lines = _lines(await self.content(place.user, found.after_hash)) if found else []
        return list(zip(lines, found.origins, strict=False)) if found else []

    async def _made(
        self,
        path: MountPath,
        place: Place,
        last: GardenEdit | None,
        after: bytes | None,
        digest: str,
        trust: str,
        back: Sequence[tuple[str, tuple[int, str]]],
        refs: Sequence[str] = (),
    ) -> dict[str, Any]:
        number = (last.number if last else 0) + 1
        old = await self.content(place.user, last.after_hash) if last else b""
        document = _read(after)
        version, mac = self.mac(document.text() if document else "")
        macs = (
            {
                one.anchor: self.mac(document.text(one.start, one.end))[1]
                for one in document.sections
                if one.anchor
            }
            if document
            else {}
        )
        origins = traced(_lines(old), last.origins if last else [], _lines(after), number, trust, back)
        if document and trust != "person":
            origins = resting(document, origins, number, refs)
        return {
            "path": str(path), "number": number, "event": 0, "user_id": place.user, "at": 0, "call": "", "persona": "",
            "tool": "", "conversation": "", "op": "", "section_anchor": "", "rationale": "", "override_rationale": "",
            "evidence_refs": [], "before_hash": last.after_hash if last else "", "after_hash": digest, "trust": trust,
            "status": "committed", "lint": [one.shown() for one in lint.check(document, place)] if document else [],
            "line_hash": mac, "section_hashes": macs, "integrity_salt_version": version,
            "origins": origins,
        }  # fmt: skip

    async def _insert(self, edits: Sequence[tuple[GardenEdit, bytes | None]]) -> int:
        """How many were new."""
        tables = await self._context.tables()
        kept = [
            value
            for edit, content in edits
            if content is not None
            for value in (edit.user_id, edit.after_hash, content)
        ]
        if kept:
            places = ", ".join(["(?, ?, ?)"] * (len(kept) // 3))
            await tables.execute(
                f"INSERT INTO garden_versions (user_id, hash, content) VALUES {places} ON CONFLICT DO NOTHING",
                *kept,
            )
        values = [value for edit, _ in edits for value in edit.values(self.ledger.keys)]
        if not edits:
            return 0
        return await tables.execute(
            f"{INSERT} VALUES {', '.join([PLACES] * len(edits))} ON CONFLICT DO NOTHING", *values
        )


def _noted(edit: GardenEdit) -> Noted:
    return Noted(
        type="garden", op=PERSON_EDIT, file_path=edit.path, before_hash=edit.before_hash, after_hash=edit.after_hash,
        rationale=edit.rationale, lint={"found": edit.lint} if edit.lint else {}, data={"by": "a person"},
    )  # fmt: skip


def _from_effect(made: dict[str, Any], effect: Effect) -> GardenEdit:
    """What the call itself said, from its sealed rows."""
    row, body = effect.started, effect.body
    args, result = body.get("args") or {}, json.loads(effect.settled.body).get("result")
    told = result if isinstance(result, dict) else {}
    trail = body.get("trail") or {}
    evidence = [str(one) for one in told.get("evidence_refs") or args.get("evidence_refs") or []]
    made.update(
        event=effect.event, at=effect.settled.at, call=row.call, persona=row.persona, tool=row.tool,
        conversation=row.conversation, op=str(told.get("op") or op_of(row.tool, args)),
        section_anchor=str(told.get("section_anchor") or args.get("section_anchor") or ""), evidence_refs=evidence,
        rationale=str(told.get("rationale") or args.get("rationale") or args.get("reason") or trail.get("rationale") or ""),
        override_rationale=str(told.get("override_rationale") or args.get("override_rationale") or ""),
    )  # fmt: skip
    return GardenEdit(**made)


def _lines(content: bytes | None) -> list[str]:
    document = _read(content)
    return [line.rstrip("\r\n") for line in document.lines] if document else []


def _read(content: bytes | None) -> MarkdownFile | None:
    if not content:
        return None
    try:
        return read(content)
    except CallError:
        return None
