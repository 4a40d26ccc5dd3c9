"""A directory and all that is in it, taken up whole, so that it can be removed and given back as it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Protocol

from toolgate.core.change import FileChange
from toolgate.core.errors import BlockedPath, Conflict, OutsideMount, TooLarge
from toolgate.core.paths import MountPath
from toolgate.workspace.look import status_of
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.tree import Entry, walk_tree

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
