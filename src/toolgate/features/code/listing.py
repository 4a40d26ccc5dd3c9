"""`code.list`: files and directories that match a glob."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.conceal import Secrets, conceal_text
from toolgate.core.context import Context
from toolgate.core.evidence import spoil
from toolgate.core.fitting import RESERVE, shorten
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.code.reading import reads_of, said
from toolgate.workspace.confine import held
from toolgate.workspace.reading import note_tree, open_to_list
from toolgate.workspace.search.query import EXCLUDED
from toolgate.workspace.search.selection import Selection, TooMany, Walk, name_globs, path_order

ROOT = MountPath("project:.")
MAX_NAMES = 1_000_000
TIME_LIMIT = 10.0
TELL_AFTER = 0.5
Listed = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        description="Glob: `*` is what is there itself, `*.py` a name at any depth, `src/**` with `/` a path from `directory`.",
    ),
]
Depth = Annotated[
    int, Field(ge=1, le=100, description="Levels to go down; 1 is what is in `directory` itself.")
]
Hidden = Annotated[
    bool, Field(description="Whether to show names that begin with a dot; blocked ones never are.")
]
Order = Annotated[
    Literal["name", "modified", "size"],
    Field(description="`modified` is newest first, `size` largest first."),
]
MaxEntries = Annotated[int, Field(ge=1, le=5000, description="Entries to give at most.")]


class FileEntry(TypedDict):
    path: str
    name: str
    size: int
    last_modified: str
    is_directory: bool


class ListResult(TypedDict):
    files: list[FileEntry]
    total_files: int
    truncated: bool
    next: NotRequired[str]


_Seen = tuple[str, str, os.stat_result, bool]


def tools(context: FeatureContext) -> list[Tool]:
    assert context.files is not None
    mounts = context.files.mounts

    @tool("code.list", reads=["project"], effects_of=reads_of, summarize=summary, cache_s=60, fit=fit_list)
    def list_files(
        ctx: Context,
        pattern: Listed = "**",
        directory: MountPath = ROOT,
        max_depth: Depth = 10,
        include_hidden: Hidden = False,
        sort_by: Order = "name",
        limit: MaxEntries = 500,
    ) -> ListResult:
        """List files and directories below `directory` whose path there matches a glob; newest or largest first
        if sorted by that."""
        handle, real = open_to_list(mounts, directory)
        with held(handle):
            chosen = Selection(mounts.rules(real), "", EXCLUDED, dotfiles=include_hidden)
            note_tree(mounts, directory, handle, real, chosen.enters)
            walk = Walk(chosen, MAX_NAMES, 1 if pattern == "*" else max_depth, directories=True)
            secrets = mounts.secrets()
            seen, complete = _seen(walk, handle, real, pattern, ctx, secrets)
        if not complete or any(status.st_nlink > 1 and not is_dir for _, _, status, is_dir in seen):
            spoil()  # where it stopped was a matter of time; a file with other names changes unseen
        seen.sort(key=_ORDERS[sort_by])
        result: ListResult = {
            "files": [_entry(directory.mount, each) for each in seen[:limit]],
            "total_files": len(seen),
            "truncated": len(seen) > limit or not complete,
        }
        if not complete:
            result["next"] = (
                "there is too much to look at in one call: give `directory` or a smaller `max_depth`"
            )
        elif result["truncated"]:
            result["next"] = "raise `limit` (at most 5,000), or give `directory` or a narrower `pattern`"
        return result

    return [list_files]


def _seen(
    walk: Walk, handle: int, real: MountPath, pattern: str, ctx: Context, secrets: Secrets | None
) -> tuple[list[_Seen], bool]:
    wanted = name_globs((pattern,), real.mount)
    start = len(real.relative) + 1 if real.relative != "." else 0
    seen: list[_Seen] = []
    begun = told = time.monotonic()
    try:
        for entry in walk.entries(handle, real.relative):
            known = conceal_text(entry.relative, secrets)  # its place in the order is part of the answer, too
            name = known.rpartition("/")[2]
            if wanted.match(real.mount, known[start:], name):
                try:
                    seen.append((known, name, entry.status(), entry.directory))
                except OSError:
                    continue  # gone meanwhile
            now = time.monotonic()
            if now > begun + TIME_LIMIT:
                return seen, False
            if now > told + TELL_AFTER:
                told = now
                ctx.progress(0.0, f"looked at {MAX_NAMES - walk.room:,} names, {len(seen):,} match")
    except TooMany:
        return seen, False
    return seen, True


def _entry(mount: str, seen: _Seen) -> FileEntry:
    relative, name, status, directory = seen
    return {
        "path": MountPath(f"{mount}:{relative}").shown,
        "name": name,
        "size": 0 if directory else status.st_size,
        "last_modified": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds"),
        "is_directory": directory,
    }


_ORDERS: dict[str, Any] = {
    "name": lambda seen: path_order(seen[0]),
    "modified": lambda seen: (-seen[2].st_mtime_ns, path_order(seen[0])),
    "size": lambda seen: (-seen[2].st_size if not seen[3] else 0, path_order(seen[0])),
}


def fit_list(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    dropped = shorten(data, "files", room - RESERVE)
    return said(data, f"{dropped:,} do not fit the budget: give `directory` or a narrower `pattern`")


def summary(data: Any) -> str:
    shown = f", {len(data['files'])} shown" if data["truncated"] else ""
    return f"Listed {data['total_files']} entries{shown}"
