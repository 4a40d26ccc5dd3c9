"""A confined walk through directories, on handles: what is there, as far as the mount's rules let it be seen.

Nothing is loaded whole: a directory of a million entries is passed through one by one, in the order of the disk.
Links to directories are shown and not followed; what rules keep shut is not shown at all. `take_tree` takes a directory
up with all that is in it, so that it can be removed and given back as it was.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal, Protocol

from toolgate.core.change import FileChange
from toolgate.core.errors import BlockedPath, Conflict, OutsideMount, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.policy.dotfiles import hidden
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import STEP, held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import note_tree, open_to_list, status_of
from toolgate.workspace.watch import Enters

EntryKind = Literal["file", "directory", "link", "other"]
MAX_DEPTH = 128
"""One handle is open for each level."""
_SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


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
                with held(os.open(entry.item.name, STEP, dir_fd=parent)) as handle:
                    yield from self.directory(handle, entry.relative + "/", entry.depth + 1)
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


MAX_ENTRIES = 5_000
MAX_BYTES = 64 << 20
"""More than this is neither shown to a human nor kept for undo in one piece."""


class Taken(Protocol):
    @property
    def content(self) -> bytes: ...
    @property
    def mode(self) -> int: ...


def take_tree(mounts: Mounts, path: MountPath, take: Callable[[MountPath], Taken | None]) -> list[FileChange]:
    """Refuses, rather than leave something out: links, special files, and what the mount's rules keep shut."""
    status = status_of(mounts, path)
    found = [_directory(path, _mode(status, path))]
    with mounts.parent(path) as (parent, _):
        device = os.fstat(parent).st_dev
    _refuse_mounted(path, status, device)
    rules, size = mounts.rules(path), 0
    for entry in walk_tree(mounts, path, everything=True, unread=refuse_unread):
        if len(found) > MAX_ENTRIES:
            raise TooLarge(f"{path.shown!r} holds more than {MAX_ENTRIES:,} entries", "take a part of it")
        if rules.refuse(entry.path, written=True) is not None or not _speakable(entry.path):
            raise BlockedPath(f"{path.shown!r} holds something that is kept shut", "leave it, or take a part")
        if entry.kind == "directory":
            _refuse_mounted(entry.path, entry.status(), device)
        each = _taken(entry, take)
        size += len(each.before or b"")
        if size > MAX_BYTES:
            raise TooLarge(f"{path.shown!r} holds more than {MAX_BYTES:,} bytes", "take a part of it")
        found.append(each)
    # a directory before what is in it, and in an order that people read and a repeated call has again
    return sorted(found, key=lambda file: file.path.split("/"))


def refuse_unread(entry: Entry) -> None:
    """What cannot be seen can be neither shown nor kept."""
    raise BlockedPath(
        f"{entry.path.shown[:200]!r} cannot be read, or lies too deep", "take it away by hand, or take a part"
    )


def _refuse_mounted(path: MountPath, status: os.stat_result | None, device: int) -> None:
    """Such a directory cannot go: all that is in it would, and it would stay."""
    if status is not None and status.st_dev != device:
        raise BlockedPath(
            f"{path.shown!r} is on another file system, mounted there", "leave it, or unmount it"
        )


def _speakable(path: MountPath) -> bool:
    """Whether it is a path that a caller could give and the journal can hold."""
    try:
        path.encode()
        return MountPath.parse(path) == path
    except (UnicodeEncodeError, OutsideMount):
        return False


def _taken(entry: Entry, take: Callable[[MountPath], Taken | None]) -> FileChange:
    if entry.kind == "directory":
        return _directory(entry.path, _mode(entry.status(), entry.path))
    if entry.kind != "file":
        raise BlockedPath(
            f"{entry.path.shown!r} is a {'symbolic link' if entry.kind == 'link' else 'special file'}, which is not kept",
            "remove it by hand",
        )
    file = take(entry.path)
    if file is None:
        raise _moved(entry.path)
    return FileChange(entry.path, file.content, None, before_mode=file.mode)


def _directory(path: MountPath, mode: int) -> FileChange:
    return FileChange(path, b"", None, before_mode=mode, kind="directory")


def _mode(status: os.stat_result | None, path: MountPath) -> int:
    if status is None:
        raise _moved(path)
    return stat.S_IMODE(status.st_mode) & 0o777


def _moved(path: MountPath) -> Conflict:
    return Conflict(f"{path.shown!r} went away meanwhile", "try again")
