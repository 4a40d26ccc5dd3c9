"""Editor of a garden: works out the one Change that an edit is, with its copy, its Change Log line and its hashes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from toolgate.core.change import Change, FileChange, content_hash
from toolgate.core.clock import iso
from toolgate.core.conceal import conceal
from toolgate.core.context import Context
from toolgate.core.errors import BlockedPath, Conflict, InvalidArgs, NotFound, NotText, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.ports import Holder
from toolgate.core.rendering import HASH_CHARACTERS
from toolgate.feature import FeatureContext
from toolgate.features.garden import edits, guard, lint
from toolgate.features.garden.grammar import MarkdownFile, off_loop, read
from toolgate.features.garden.layout import CHANGE_LOG, Place, history_of, path_for, place_of, template
from toolgate.workspace.files import FoundFile, WorkspaceFiles
from toolgate.workspace.reading import status_of
from toolgate.workspace.text import canonical_text

PURPOSE = "garden text"
MOST_WORK = 2 << 20
"""Bytes of a file times the steps of an edit."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    path: MountPath
    anchor: str
    if_match: str
    rationale: str
    override: str
    evidence: tuple[str, ...]

    def __post_init__(self) -> None:
        for text in (self.rationale, self.override):
            if "\n" in text or "\r" in text:
                raise InvalidArgs("a rationale is one line", "say it in one sentence")


class Editor:
    def __init__(self, context: FeatureContext, files: WorkspaceFiles) -> None:
        self._context, self.files = context, files

    def place(self, path: MountPath) -> Place:
        """What a path of a garden stands for."""
        if self.files.mounts.kind(path.mount).name != "garden":
            raise InvalidArgs(
                f"{path.shown!r} is not in a garden", "name a file of a mount of the kind garden"
            )
        place = place_of(path.relative)
        if place is None:
            told = f"{path.shown!r} is none of the files that a garden has (rule garden:roots)"
            raise BlockedPath(told, "`garden.add` makes new ones", data={"rule": "garden:roots"})
        return place

    def mac(self, text: str, version: int | None = None) -> tuple[int, str]:
        """The version of the key, by default the newest, and the HMAC of a text in its canonical form."""
        keys = self._context.services.ledger.keys
        return keys.mac_for(PURPOSE, canonical_text(text).encode(), version)

    def known(self, content: bytes) -> bytes:
        """The same lines, as whoever asks about them may know them."""
        return conceal(content, self.files.mounts.secrets()).text

    def exists(self, path: MountPath, place: Place) -> lint.Exists:
        def there(kind: str, ident: str) -> bool:
            try:
                relative = path_for(kind, place.user, ident)
            except InvalidArgs:  # too long for an id
                return False
            return status_of(self.files.mounts, MountPath(f"{path.mount}:{relative}")) is not None

        return there

    def asks(self, persona: str) -> bool:
        found = self._context.services.registry.resolve("md.patch_section")
        return self._context.gate.policy.outlook(persona, found).verdict == "ask"

    def guard(self, change: Change, tool: str) -> None:
        for mount in {file.path.mount for file in change.files}:
            guard.check(mount, change, Holder(tool=tool))

    async def apply(self, change: Change) -> None:
        if change.files:
            await self.files.apply(change)

    async def plan(
        self, context: Context, request: EditRequest, op: str, edit: edits.Edit, steps: int = 1
    ) -> Change:
        """`steps`: how often the file is read anew to work the edit out."""
        place, found = await self._found(request.path)
        raw = found.content
        if steps > 1 and len(raw) * steps > MOST_WORK:
            raise InvalidArgs(
                f"{steps} items in one call are too many for a file of {len(raw):,} bytes",
                f"give at most {max(1, MOST_WORK // len(raw))}, and the others in further calls",
            )
        work = lambda: self._edited(request, edit, place, raw)  # noqa: E731
        before, edited, passes = await off_loop(raw, work, steps)
        shown = before.section(request.anchor).anchor
        if edited == raw:
            report = await off_loop(raw, lambda: self._report(request, op, shown, before, before, ()))
            return Change((), "nothing to change", report=report)
        entry = self._entry(context, request, op, shown, passes)
        files = await self._copy(request.path, place, found)
        history = next((file.path.shown for file in files if file.kind == "file"), "")

        def finish() -> tuple[bytes, dict[str, Any]]:
            whole = edits.with_log(edited, entry)
            after = read(whole)
            linted = tuple(lint.check(after, place, self.exists(request.path, place)))
            return whole, self._report(request, op, shown, before, after, linted, history)

        whole, report = await off_loop(edited, finish)
        files.append(FileChange(request.path, raw, whole))
        return Change(tuple(files), f"{op} {shown} of {request.path.shown}", report=report)

    def _edited(
        self, request: EditRequest, edit: edits.Edit, place: Place, raw: bytes
    ) -> tuple[MarkdownFile, bytes, bool]:
        """The file as it was, its new content, and whether that passes a cap."""
        before = read(raw, request.path.shown)
        section = before.section(request.anchor)
        if section.anchor == CHANGE_LOG:
            told = f"{request.path.shown}, line {section.start + 1}: the Change Log is written by the garden alone (rule garden:change-log)"
            raise BlockedPath(
                told, "say why in `rationale` of the edit it is about", data={"rule": "garden:change-log"}
            )
        edited = edit(raw)
        if request.if_match and not _matches(request.if_match, before, raw, request.anchor):
            now = before.text(section.body, section.end)
            told = f"the section `{section.anchor}` of {request.path.shown} is {before.hash(section)}, not {request.if_match!r}"
            after = read(edited, request.path.shown)
            yours = after.text(after.section(request.anchor).body, after.section(request.anchor).end)
            data = {"path": request.path.shown, "hash": before.hash(section), "now": now, "yours": yours}
            raise Conflict(told, "read the section again, and put both together", data=data)
        if edited == raw:
            return before, edited, False
        caps = lint.passed(before, read(edited, request.path.shown), place.kind)
        if caps and not request.override:
            raise InvalidArgs(
                f"{request.path.shown}, line {caps[0].line}: {caps[0].message} (rule garden:cap)",
                'shorten it, or say why in one line: `override_rationale: "…"`; it is kept in the Change Log',
                data={"rule": "garden:cap", "line": caps[0].line},
            )
        return before, edited, bool(caps)

    async def whole(self, request: EditRequest, content: str) -> Change:
        """A file as it would be, for a proposal."""
        place, found = await self._found(request.path)
        raw = content.encode()
        told = await off_loop(
            raw,
            lambda: [
                one.shown()
                for one in lint.check(read(raw, request.path.shown), place, self.exists(request.path, place))
            ],
        )
        return Change(
            (FileChange(request.path, found.content, raw),),
            f"write {request.path.shown}",
            report={"lint": told},
        )

    async def snapshot(self, path: MountPath) -> Change:
        place, found = await self._found(path)
        parts = await self._copy(path, place, found, always=True)
        return Change(
            tuple(parts),
            f"keep {path.shown}",
            report={"path": path.shown, "history_path": _copy_path(self.files, path, found.content).shown},
        )

    async def add(
        self, mount: str, kind: str, user: str, ident: str, title: str, participants: tuple[str, ...]
    ) -> Change:
        wanted = ["overview", "notes"] if kind == "user" else [kind]
        paths = [MountPath.parse(f"{mount}:{path_for(each, user, ident)}") for each in wanted]
        for path in paths:
            self.place(path)
        new = [
            (each, path)
            for each, path in zip(wanted, paths, strict=True)
            if await self.files.look_at(path) is None
        ]
        if not new:
            raise Conflict(f"{paths[0].shown} is there already", "edit it, or choose another id")
        made = [
            FileChange(path, None, template(each, user, ident, title, participants).encode())
            for each, path in new
        ]
        parents = await self.files.to_make([file.path for file in made])
        report = {"created": [file.path.shown for file in made], "user": user}
        return Change((*parents, *made), f"add {kind} {ident or user}", report=report)

    async def fix(self, path: MountPath) -> Change:
        place, found = await self._found(path)
        after = await off_loop(found.content, lambda: edits.fixed(found.content, place))
        left = await off_loop(after, lambda: [one.shown() for one in lint.check(read(after), place)])
        return await self._whole_edit(path, place, found, after, "fix", {"left": left})

    async def restore(self, path: MountPath, version: str, content: bytes, reason: str) -> Change:
        """Also of a file that somebody deleted by hand."""
        place, found = self.place(path), await self.files.take(path)
        if found is None or content != found.content:
            content = brought_back(content, found.content) if found is not None else content
            content = edits.with_log(
                content, f"{self._today()} restore of version {version}" + (f": {reason}" if reason else "")
            )
        return await self._whole_edit(path, place, found, content, "restore", {"version": version})

    async def _whole_edit(
        self, path: MountPath, place: Place, found: FoundFile | None, after: bytes, op: str, more: Mapping[str, Any]
    ) -> Change:  # fmt: skip
        before = found.content if found is not None else None
        report = {"path": path.shown, "op": op, "changed": after != before, "before_hash": content_hash(before) or "",
                  "after_hash": content_hash(after), **more}  # fmt: skip
        kept = await self._copy(path, place, found) if found is not None else await self.files.to_make([path])
        parts = [*kept, FileChange(path, before, after)] if after != before else []
        return Change(tuple(parts), f"{op} {path.shown}", report=report)

    async def _found(self, path: MountPath) -> tuple[Place, FoundFile]:
        place = self.place(path)
        if place.kind == "history":
            raise BlockedPath(
                f"{path.shown} is a copy (rule garden:history)",
                "edit the file itself",
                data={"rule": "garden:history"},
            )
        found = await self.files.take(path)
        if found is None:
            raise NotFound(
                f"there is no {path.shown!r}", "`garden.add` makes new files; `fs.list` shows what is there"
            )
        return place, found

    async def _copy(
        self, path: MountPath, place: Place, found: FoundFile, always: bool = False
    ) -> list[FileChange]:
        """A copy of what is there, with the directories on the way to it; nothing where that is kept already."""
        return await _copied(self.files, path, found.content) if place.versioned or always else []

    def _today(self) -> str:
        return iso(self._context.services.ledger.clock.now())[:10]

    def _entry(self, context: Context, request: EditRequest, op: str, anchor: str, passes: bool) -> str:
        why = request.rationale or context.reason
        parts = [f"{self._today()} {op} {anchor} by {context.persona}", why]
        parts += [f"cap passed: {request.override}"] if passes else []
        cited = f" ({', '.join(request.evidence)})" if request.evidence else ""
        return "; ".join(part for part in parts if part) + cited

    def _report(
        self, request: EditRequest, op: str, anchor: str, before: MarkdownFile, after: MarkdownFile,
        found: tuple[lint.LintFinding, ...], history: str = "",
    ) -> dict[str, Any]:  # fmt: skip
        section = after.section(anchor)
        version, mac = self.mac(after.text(section.start, section.end))
        told: dict[str, Any] = {
            "path": request.path.shown, "changed": after is not before, "before_hash": before.hash(before.section(anchor)),
            "after_hash": after.hash(section), "file_hash": after.hash(), "section_anchor": anchor, "op": op,
            "line_hash": mac, "integrity_salt_version": version,
        }  # fmt: skip
        more = {
            "history_path": history, "rationale": request.rationale, "override_rationale": request.override,
            "evidence_refs": list(request.evidence), "lint": [one.shown() for one in found],
        }  # fmt: skip
        return told | {name: value for name, value in more.items() if value}


async def with_copies(files: WorkspaceFiles, change: Change, tool: str) -> Change:
    """With a copy of each profile that it edits, also where no tool of the garden's own planned it."""
    if tool in guard.EDITS | guard.REPAIRS or tool == guard.UNDO:
        return change
    kept: list[FileChange] = []
    for file in change.files:
        place = place_of(file.path.relative) if files.mounts.kind(file.path.mount).name == "garden" else None
        if place is not None and place.versioned and file.before is not None and file.before != file.after:
            kept += await _copied(files, file.path, file.before)
    return replace(change, files=(*dict.fromkeys(kept), *change.files)) if kept else change


async def _copied(files: WorkspaceFiles, path: MountPath, content: bytes) -> list[FileChange]:
    """A copy of what is there, with the directories on the way to it; nothing where that is kept already."""
    copy = _copy_path(files, path, content)
    if await files.look_at(copy) is not None:
        return []
    return [*await files.to_make([copy]), FileChange(copy, None, content)]


def _copy_path(files: WorkspaceFiles, path: MountPath, content: bytes) -> MountPath:
    """Named by when this version was written: whoever plans the same edit again names the same copy."""
    status = status_of(files.mounts, path)
    moment = datetime.fromtimestamp((status.st_mtime_ns if status else 0) / 1e9, UTC)
    digest = (content_hash(content) or "")[7:19]
    return MountPath(f"{path.mount}:{history_of(path.relative, f'{moment:%Y%m%dT%H%M%S.%f}Z.{digest}')}")


def _matches(if_match: str, before: MarkdownFile, raw: bytes, anchor: str) -> bool:
    digits = if_match.removeprefix("sha256:").lower()
    known = (before.hash(before.section(anchor)), before.hash(), content_hash(raw) or "")
    return len(digits) >= HASH_CHARACTERS and any(one.startswith(f"sha256:{digits}") for one in known)


def brought_back(content: bytes, now: bytes) -> bytes:
    """An earlier version as a restore writes it, but for the line that it adds to the Change Log."""
    with suppress(NotText, TooLarge):  # of what is there now
        return edits.with_log_of(content, now)
    return content
