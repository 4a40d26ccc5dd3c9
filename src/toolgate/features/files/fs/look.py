"""`fs.list` and `fs.find`: what is there. Bounded, sorted, and honest about what was left out."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

from toolgate.core.conceal import Secrets, conceal_text
from toolgate.core.context import Context
from toolgate.core.errors import ConfigError, InvalidArgs
from toolgate.core.evidence import spoil
from toolgate.core.fitting import RESERVE, leading, shorten, size
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.core.tool import Tool, tool
from toolgate.features.files.fs.arguments import Detailed, Glob, Limit, Pattern, by_mount
from toolgate.policy.globs import path_glob, text_glob
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.tree import Entry, walk_tree

TELL_EVERY = 10_000
SCAN = 1_000_000
"""Entries that one call looks at."""
TIME_LIMIT = 10.0
"""Seconds after which it gives what it has seen, and says that this is not all."""


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


def tools(files: WorkspaceFiles) -> list[Tool]:
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
