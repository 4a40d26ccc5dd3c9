"""Where a search begins: each path opened once, by the rules for reading, and named as it really is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby

from toolgate.core.errors import BlockedPath, NotFound
from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import Root
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.proof import note_tree
from toolgate.workspace.reading import open_to_list, open_to_read
from toolgate.workspace.search.selection import Selection
from toolgate.workspace.search.tree import path_order


@dataclass(frozen=True, slots=True)
class Start:
    """A directory or a file to search, open."""

    root: Root
    mount: str
    relative: str
    handle: int
    directory: bool
    selection: Selection
    hard_links: bool

    def shown(self, relative: str) -> str:
        return MountPath(f"{self.mount}:{relative}").shown


@contextmanager
def opened(
    mounts: Mounts, paths: Sequence[MountPath], files: str, excluded: Sequence[str]
) -> Iterator[list[list[Start]]]:
    """The starts, by mount, in path order; one that lies below another is left out."""
    with ExitStack() as stack:
        found = [_open(mounts, path, stack, files, excluded) for path in dict.fromkeys(paths)]
        found.sort(key=lambda start: (start.mount, path_order(start.relative)))
        yield [_outermost(list(group)) for _, group in groupby(found, key=lambda start: start.mount)]


def _open(mounts: Mounts, path: MountPath, stack: ExitStack, files: str, excluded: Sequence[str]) -> Start:
    mount, _ = mounts.resolve(path)
    rules = mounts.rules(path)
    selection = Selection(rules, files, excluded)
    try:
        handle, real = open_to_list(mounts, path)
        directory = True
    except (NotFound, BlockedPath):
        handle, real, directory = open_to_read(mounts, path), path, False
    stack.callback(os.close, handle)
    if directory and not rules.hard_links:
        note_tree(mounts, path, handle, real, selection.enters)
    else:  # of a single file the search is as quick as its proof; one with other names changes unseen
        spoil()
    return Start(mount.root, path.mount, real.relative, handle, directory, selection, rules.hard_links)


def _outermost(starts: list[Start]) -> list[Start]:
    kept: list[Start] = []
    for start in starts:
        if not any(_within(start.relative, outer) for outer in kept):
            kept.append(start)
    return kept


def _within(relative: str, outer: Start) -> bool:
    if relative == outer.relative:
        return True
    return outer.directory and (outer.relative == "." or relative.startswith(outer.relative + "/"))
