"""A confined walk through directories, on handles: what is there, as far as the mount's rules let it be seen.

Nothing is loaded whole: a directory of a million entries is passed through one by one, in the order of the disk.
Links to directories are shown and not followed; what rules keep shut is not shown at all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from toolgate.core.paths import MountPath
from toolgate.policy.dotfiles import hidden
from toolgate.policy.hard import MountRules
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.proof import note_tree
from toolgate.workspace.reading import open_to_list
from toolgate.workspace.watch import Enters

EntryKind = Literal["file", "directory", "link", "other"]
MAX_DEPTH = 128
"""One handle is open for each level."""
_SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    relative: str
    """From the directory where the walk began."""
    base: MountPath
    kind: EntryKind
    depth: int
    """1 for what is in the first directory."""
    item: os.DirEntry[str]

    @property
    def path(self) -> MountPath:
        return _joined(self.base, self.relative)

    def status(self) -> os.stat_result | None:
        """Of the entry itself, never of what a link leads to. Only while the walk stands at it."""
        try:
            return self.item.stat(follow_symlinks=False)
        except OSError:
            return None


Enter = Callable[[Entry], bool]
Unread = Callable[[Entry], None]


def walk_tree(
    mounts: Mounts,
    base: MountPath,
    *,
    depth: int = MAX_DEPTH,
    enter: Enter | None = None,
    everything: bool = False,
    unread: Unread | None = None,
) -> Iterator[Entry]:
    """What is below `base`, directories before what is in them.

    `enter` may keep the walk out of directories; `everything` also shows what rules keep shut, for whoever must
    know that it is there. `unread` is told of a directory that could not be read, or not to its end, or is too deep.
    """
    handle, real = open_to_list(mounts, base)
    rules = None if everything else mounts.rules(base)
    with ExitStack() as open_:
        open_.callback(os.close, handle)
        note_tree(mounts, base, handle, real, _entered(rules, real, depth))
        yield from _Walk(rules, min(depth, MAX_DEPTH), enter, base, real, unread).directory(handle, "", 1)


def _entered(rules: MountRules | None, real: MountPath, depth: int) -> Enters:
    """The directories to watch: all that such a walk may come to, whatever `enter` says."""
    return lambda relative, name: (
        depth > 1
        and (rules is None or rules.refuse(MountPath(f"{real.mount}:{relative}"), written=False) is None)
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    rules: MountRules | None
    depth: int
    enter: Enter | None
    base: MountPath
    real: MountPath
    """Where `base` really is; links on the way to it are allowed, and rules judge the real names."""
    unread: Unread | None

    def directory(self, handle: int, below: str, depth: int) -> Iterator[Entry]:
        open_way = not any(map(hidden, _joined(self.real, below).relative.split("/")[:-1]))
        with os.scandir(handle) as items:
            for item in items:
                entry = self._entry(item, below, depth, open_way)
                if entry is None:
                    continue
                yield entry
                if entry.kind == "directory" and (not self.enter or self.enter(entry)):
                    yield from self._below(handle, entry)

    def _below(self, parent: int, entry: Entry) -> Iterator[Entry]:
        try:
            if entry.depth < self.depth:
                handle = os.open(entry.item.name, _DIRECTORY, dir_fd=parent)
                try:
                    yield from self.directory(handle, entry.relative + "/", entry.depth + 1)
                finally:
                    os.close(handle)
                return
        except OSError as error:  # gone, swapped for a link, or not ours to read
            if error.errno in _SHORT_OF:  # it is there, and a listing without it would be a lie
                raise
        if self.unread is not None:
            self.unread(entry)

    def _entry(self, item: os.DirEntry[str], below: str, depth: int, open_way: bool) -> Entry | None:
        """Below a hidden name, every path is judged; elsewhere a plain name is shown without."""
        relative, rules = below + item.name, self.rules
        if rules is not None and not (open_way and rules.plain(item.name)) and self._shut(rules, relative):
            return None
        return Entry(relative, self.base, _kind(item), depth, item)

    def _shut(self, rules: MountRules, relative: str) -> bool:
        return rules.refuse(_joined(self.real, relative), written=False) is not None


def _joined(base: MountPath, relative: str) -> MountPath:
    """Not parsed: names on a disk may be such as no caller could write."""
    start = "" if base.relative == "." else base.relative + "/"
    return MountPath(f"{base.mount}:{start}{relative}")


def _kind(item: os.DirEntry[str]) -> EntryKind:
    try:
        if item.is_symlink():
            return "link"
        if item.is_dir(follow_symlinks=False):
            return "directory"
        if item.is_file(follow_symlinks=False):
            return "file"
    except OSError:
        pass
    return "other"
