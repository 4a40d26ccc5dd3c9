"""`fs.list`, `fs.find`, `fs.ensure_dir`, `fs.move`, `fs.delete`: the tree of files, what is in it and what is put elsewhere.

What is listed is bounded, sorted, and honest about what was left out.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.change import Change, FileChange
from toolgate.core.conceal import Secrets, conceal_text
from toolgate.core.context import Context
from toolgate.core.errors import BlockedPath, ConfigError, Conflict, InvalidArgs
from toolgate.core.evidence import spoil
from toolgate.core.fitting import RESERVE, leading, shorten, size
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.core.tool import Tool, tool
from toolgate.features.files.fs.read import by_mount, missing
from toolgate.policy.globs import path_glob, text_glob
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.tree import Entry, refuse_unread, walk_tree

TELL_EVERY = 10_000
SCAN = 1_000_000
"""Entries that one call looks at."""
TIME_LIMIT = 10.0
"""Seconds after which it gives what it has seen, and says that this is not all."""
_GLOB = Field(min_length=1, max_length=1000)
Glob = Annotated[
    Annotated[str, _GLOB] | None,
    Field(description="Only what matches: names here (`*.py`), or with `/` paths below (`**/*.py`)."),
]
Pattern = Annotated[
    str,
    _GLOB,
    Field(description="Glob: a name at any depth (`*.py`), or with `/` a path from `base` (`src/**/*.py`)."),
]
Limit = Annotated[int, Field(ge=1, le=10_000, description="Entries to give at most.")]
Detailed = Annotated[bool, Field(description="Add `details`: kind, size and time of change of each.")]
NewPath = Annotated[
    MountPath, Field(description="Where it goes, with its new name; nothing may be there yet.")
]


class Details(TypedDict):
    path: str
    kind: str
    size: int | None
    modified: str | None


class Listing(TypedDict):
    path: str
    entries: list[str]
    count: int
    truncated: bool
    details: NotRequired[list[Details]]
    next: NotRequired[str]


class Finds(TypedDict):
    base: str
    pattern: str
    files: list[str]
    count: int
    truncated: bool
    next: NotRequired[str]


def looking(files: WorkspaceFiles) -> list[Tool]:
    @tool(
        "fs.list",
        reads=["project"],
        effects_of=by_mount(files, "path", writes=False),
        cache_s=60,
        fit=fit_list,
    )
    async def list_directory(
        ctx: Context,
        path: MountPath = MountPath("project:."),  # noqa: B008 - a constant
        glob: Glob = None,
        limit: Limit = 1000,
        details: Detailed = False,
    ) -> Listing:
        """List a directory, sorted; directories end with `/`. `glob` selects names, with `/` or `**` also below."""
        secrets = files.mounts.secrets()
        wanted, deep = (_matcher(glob, secrets), "/" in glob or "**" in glob) if glob else (None, False)

        def work() -> Listing:
            walk = walk_tree(files.mounts, path) if deep else walk_tree(files.mounts, path, depth=1)
            picked = _first(_telling(walk, ctx), wanted, limit, secrets, details=details)
            found = Listing(
                path=path.shown, entries=[one.name for one in picked.rows], count=len(picked.rows),
                truncated=picked.truncated,
            )  # fmt: skip
            if picked.truncated:
                found["next"] = picked.how_to_go_on("give a `glob` or a directory in it")
            if details:
                found["details"] = [one.details for one in picked.rows]
            return found

        return await files.run(work)

    @tool(
        "fs.find",
        reads=["project"],
        effects_of=by_mount(files, "base", writes=False),
        cache_s=60,
        fit=fit_find,
    )
    async def find(ctx: Context, base: MountPath, pattern: Pattern, limit: Limit = 1000) -> Finds:
        """Find files below `base`. A pattern without `/` is about names (`*.ts`), one with it about paths (`src/**/*.ts`)."""
        secrets = files.mounts.secrets()
        wanted = _matcher(pattern, secrets)

        def work() -> Finds:
            walk = walk_tree(files.mounts, base)
            picked = _first(_telling(walk, ctx), wanted, limit, secrets, files_only=True)
            names = [one.details["path"] for one in picked.rows]
            found = Finds(
                base=base.shown, pattern=pattern, files=names, count=len(names), truncated=picked.truncated
            )
            if picked.truncated:
                found["next"] = picked.how_to_go_on("give a narrower `pattern` or `base`")
            return found

        return await files.run(work)

    return [list_directory, find]


class _Row(NamedTuple):
    name: str
    details: Details


@dataclass(slots=True)
class _Picked:
    rows: list[_Row]
    truncated: bool
    stopped: bool
    """Because there was too much to look at: these may not be the first."""

    def how_to_go_on(self, narrower: str) -> str:
        if self.stopped:
            return f"there is too much to look at in one call, and these may not be the first: {narrower}"
        return f"raise `limit` (at most 10,000), or {narrower}"


def _matcher(pattern: str, secrets: Secrets | None) -> Callable[[Entry], bool]:
    try:
        if "/" not in pattern:
            name = text_glob(pattern)
            return lambda entry: name.matches(conceal_text(entry.item.name, secrets))
        path = path_glob(pattern.removeprefix("./"))
    except ConfigError as error:
        raise InvalidArgs(error.message, error.fix) from None
    return lambda entry: path.exact.fullmatch(conceal_text(entry.relative, secrets) + "/") is not None


def _telling(walk: Iterator[Entry], ctx: Context) -> Iterator[Entry]:
    for count, entry in enumerate(walk, 1):
        if not count % TELL_EVERY:
            ctx.progress(0.0, f"looked at {count:,} names")
        yield entry


def _first(
    walk: Iterator[Entry],
    wanted: Callable[[Entry], bool] | None,
    limit: int,
    secrets: Secrets | None,
    *,
    files_only: bool = False,
    details: bool = False,
) -> _Picked:
    """The first by name. However many there are, no more than asked for are held. A secret in a name is left out of
    the order, too: where it stands among names that somebody chose would tell what it is."""
    cut = False
    until = time.monotonic() + TIME_LIMIT

    def rows() -> Iterator[_Row]:
        nonlocal cut
        for count, entry in enumerate(walk):
            if count >= SCAN or (count % 256 == 0 and time.monotonic() > until):
                cut = True
                return
            if files_only and entry.kind not in ("file", "link"):
                continue
            if wanted is None or wanted(entry):
                yield _row(entry, details)

    found = heapq.nsmallest(limit + 1, rows(), key=lambda row: conceal_text(row.name, secrets))
    return _Picked(found[:limit], cut or len(found) > limit, cut)


def _row(entry: Entry, details: bool) -> _Row:
    status = entry.status() if details else None
    if status is not None and status.st_nlink > 1 and entry.kind == "file":
        spoil()  # it may be changed under its other name, where no watch is
    modified = None if status is None else datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
    size = status.st_size if status is not None and entry.kind == "file" else None
    name = entry.relative + ("/" if entry.kind == "directory" else "")
    return _Row(name, Details(path=entry.path.shown, kind=entry.kind, size=size, modified=modified))


def fit_list(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    if "details" in data and size(data) > room:
        kept = leading([*zip(data["entries"], data["details"], strict=True)], room - 300)
        data["entries"], data["details"] = data["entries"][:kept], data["details"][:kept]
    else:
        shorten(data, "entries", room)
    told = "not all fit the budget: give a `glob` or a directory in it"
    return {**data, "count": len(data["entries"]), "truncated": True, "next": told}


def fit_find(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    shorten(data, "files", room - RESERVE)
    told = "not all fit the budget: give a narrower `pattern` or `base`"
    return {**data, "count": len(data["files"]), "truncated": True, "next": told}


class Ensured(TypedDict):
    path: str
    created: bool


class Moved(TypedDict):
    path: str
    new_path: str
    files: int


class Deleted(TypedDict):
    path: str
    deleted: list[str]
    count: int


def moving(files: WorkspaceFiles) -> list[Tool]:
    async def plan_ensure(path: MountPath) -> Change:
        """Make a directory and those that lead to it, if they are not there."""
        made = await files.to_make([MountPath(f"{path}/x")]) if path.relative != "." else []
        if not made and path.relative != ".":  # there by now: still the same call, whoever made it
            made = [FileChange(path, None, b"", kind="directory")]
        return Change(tuple(made), f"make {path.shown}", report={"path": path.shown})

    async def ensure(change: Change) -> Ensured:
        await files.apply(change)
        return Ensured(path=change.report["path"], created=bool(change.made))

    async def plan_move(path: MountPath, new_path: NewPath) -> Change:
        """Move or rename a file or a directory. Nothing is overwritten."""
        _check_goal(path, new_path)
        if await files.look_at(new_path) is not None:
            raise Conflict(f"there is something at {new_path.shown!r} already", "choose another path")
        gone = await _taken(files, path)
        come = [_elsewhere(file, path, new_path) for file in gone]
        parents = await files.to_make([new_path])
        report = {"path": path.shown, "new_path": new_path.shown}
        return Change((*gone, *parents, *come), f"move {path.shown} to {new_path.shown}", report=report)

    async def move(change: Change) -> Moved:
        await _still_whole(files, change)
        await files.apply(change)
        count = sum(file.kind == "file" and file.after is not None for file in change.files)
        return Moved(path=change.report["path"], new_path=change.report["new_path"], files=count)

    async def plan_delete(path: MountPath) -> Change:
        """Delete a file or a directory. What was there is kept, and `toolgate undo` brings it back."""
        gone = await _taken(files, path)
        return Change(tuple(gone), f"delete {path.shown}", report={"path": path.shown})

    async def delete(change: Change) -> Deleted:
        await _still_whole(files, change)
        await files.apply(change)
        names = [file.path.shown for file in change.files if file.kind == "file"]
        return Deleted(path=change.report["path"], deleted=names, count=len(names))

    project: dict[str, Any] = {"reads": ["project"], "writes": ["project"]}
    one, two = by_mount(files, "path", writes=True), by_mount(files, "path", "new_path", writes=True)
    return [
        tool("fs.ensure_dir", plan=plan_ensure, effects_of=one, **project)(ensure),
        tool(
            "fs.move",
            plan=plan_move,
            effects_of=two,
            phase="collaborate",
            risk="high",
            timeout=120.0,
            **project,
        )(move),
        tool("fs.delete", plan=plan_delete, effects_of=one, risk="high", timeout=120.0, **project)(delete),
    ]


async def _taken(files: WorkspaceFiles, path: MountPath) -> list[FileChange]:
    """All that is at a path, as the parts of a Change that removes it."""
    if path.relative == ".":
        raise BlockedPath(f"the mount {path.mount} itself stays where it is", "name something in it")
    files.mounts.check_deletes(path)
    kind = await files.look_at(path)
    if kind is None:
        raise missing(path)
    if kind == "directory":
        return await files.take_tree(path)
    found = await files.take(path)
    if found is None:
        raise missing(path)
    return [FileChange(path, found.content, None, before_mode=found.mode)]


def _check_goal(path: MountPath, new_path: MountPath) -> None:
    if new_path == path or path in new_path.parents or new_path.relative == ".":
        raise InvalidArgs(f"{path.shown!r} cannot be moved to {new_path.shown!r}", "choose another path")


def _elsewhere(file: FileChange, base: MountPath, new_base: MountPath) -> FileChange:
    path = MountPath.parse(str(new_base) + str(file.path)[len(base) :])
    return FileChange(path, None, file.before, after_mode=file.before_mode, kind=file.kind)


async def _still_whole(files: WorkspaceFiles, change: Change) -> None:
    """A directory must hold what a human saw that it holds; files are compared by their hashes anyway."""
    tops = [file for file in change.files if file.kind == "directory" and file.after is None]
    if not tops:
        return
    known = {str(file.path) for file in change.files if file.after is None}

    def work() -> None:
        for entry in walk_tree(files.mounts, tops[0].path, everything=True, unread=refuse_unread):
            if str(entry.path) not in known:
                raise Conflict(f"{entry.path.shown!r} has come since the change was planned", "plan again")

    await files.run(work)
