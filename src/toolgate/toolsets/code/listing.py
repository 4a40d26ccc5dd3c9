"""`code.list`: files and directories that match a glob."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict  # typing's own, before 3.12, is not enough for pydantic

from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.toolsets.code.effects import reads_of
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.proof import note_tree
from toolgate.workspace.reading import open_to_list
from toolgate.workspace.search.query import EXCLUDED
from toolgate.workspace.search.selection import Selection, name_globs
from toolgate.workspace.search.tree import TooMany, Walk, path_order

ROOT = MountPath("project:.")
MAX_NAMES = 1_000_000
TIME_LIMIT = 10.0


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


_Seen = tuple[str, str, os.stat_result, bool]


def tools(mounts: Mounts) -> list[Tool]:
    @tool("code.list", reads=["project"], effects_of=reads_of, cache_s=60, summarize=summary)
    def list_files(
        pattern: Annotated[str, Field(min_length=1, max_length=512)] = "**",
        directory: MountPath = ROOT,
        max_depth: Annotated[int, Field(ge=1, le=100)] = 10,
        include_hidden: bool = False,
        sort_by: Literal["name", "modified", "size"] = "name",
        limit: Annotated[int, Field(ge=1, le=5000)] = 500,
    ) -> ListResult:
        """List files and directories below `directory` whose path there matches a glob; newest or largest first
        if sorted by that."""
        handle, real = open_to_list(mounts, directory)
        with held(handle):
            selection = Selection(mounts.rules(real), "", EXCLUDED, dotfiles=include_hidden)
            note_tree(mounts, directory, handle, real, selection.enters)
            seen, complete = _seen(selection, handle, real, pattern, max_depth)
        if not complete or any(status.st_nlink > 1 and not is_dir for _, _, status, is_dir in seen):
            spoil()  # where it stopped was a matter of time; a file with other names changes unseen
        seen.sort(key=_ORDERS[sort_by])
        return {
            "files": [_entry(directory.mount, each) for each in seen[:limit]],
            "total_files": len(seen),
            "truncated": len(seen) > limit or not complete,
        }

    return [list_files]


def _seen(
    selection: Selection, handle: int, real: MountPath, pattern: str, max_depth: int
) -> tuple[list[_Seen], bool]:
    wanted = name_globs((pattern,), real.mount)
    walk = Walk(selection, MAX_NAMES, max_depth, directories=True)
    start = len(real.relative) + 1 if real.relative != "." else 0
    seen: list[_Seen] = []
    deadline = time.monotonic() + TIME_LIMIT
    try:
        for entry in walk.entries(handle, real.relative):
            if wanted.match(real.mount, entry.relative[start:], entry.name):
                try:
                    seen.append((entry.relative, entry.name, entry.status(), entry.directory))
                except OSError:
                    continue  # gone meanwhile
            if time.monotonic() > deadline:
                return seen, False
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


def summary(data: Any) -> str:
    shown = f", {len(data['files'])} shown" if data["truncated"] else ""
    return f"Listed {data['total_files']} entries{shown}"
