"""What is at a path right now: its content's hash, and enough to notice later that it was touched since."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from typing import Literal, Self

from toolgate.core.change import DIRECTORY
from toolgate.core.errors import BlockedPath, Conflict, NotFound, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held, open_file
from toolgate.workspace.mounts import Mounts

_CHUNK = 1 << 20
_ATTEMPTS = 4
_YOUNG_NS = 2_000_000_000
"""Stamps are as coarse as this on the coarsest file systems: a second write soon after a first one may not show."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was found; no hash and no status means there was none."""

    hash: str | None = None
    status: os.stat_result | None = None

    def still(self, status: os.stat_result | None) -> bool:
        return identity(self.status) == identity(status)


def look(mounts: Mounts, path: MountPath) -> SeenFile:
    """Hash the file itself; a link in its place is refused, not followed. A directory has a word for a hash."""
    mount, relative = mounts.resolve(path)
    try:
        handle = open_file(mount.root, relative, path.shown, follow=False)
    except NotFound:
        return SeenFile()
    except BlockedPath:
        status = status_of(mounts, path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise
        return SeenFile(DIRECTORY, status)
    with held(handle):
        status = os.fstat(handle)  # before the content, so that a write in between shows
        digest = hashlib.sha256()
        while chunk := os.read(handle, _CHUNK):
            digest.update(chunk)
    return SeenFile("sha256:" + digest.hexdigest(), status)


def kind_of(mounts: Mounts, path: MountPath) -> Literal["file", "directory"] | None:
    """What is there, by the same rules as `look` and without reading it, however large it is."""
    mount, relative = mounts.resolve(path)
    try:
        os.close(open_file(mount.root, relative, path.shown, follow=False))
    except NotFound:
        return None
    except BlockedPath:
        status = status_of(mounts, path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise
        return "directory"
    return "file"


def status_of(mounts: Mounts, path: MountPath) -> os.stat_result | None:
    """The status of whatever has this name, without opening it."""
    try:
        with mounts.parent(path) as (parent, name):
            return status_in(parent, name)
    except NotFound:
        return None


def status_in(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_all(handle: int, shown: str, limit: int) -> bytes:
    """The content of an open file. Counted while reading: the size it claims may be out of date."""
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
        parts.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise TooLarge(f"{shown!r} is larger than {limit:,} bytes", "read a part of it")
    return b"".join(parts)


def read_steady(handle: int, shown: str, limit: int) -> tuple[bytes, os.stat_result]:
    """The content as it was at one moment, also where somebody writes into the file meanwhile; and its status then."""
    for _ in range(_ATTEMPTS):
        with Steady(handle) as steady:
            os.lseek(handle, 0, os.SEEK_SET)
            content = read_all(handle, shown, limit)
            if steady.young:  # its times do not tell, so the bytes must
                os.lseek(handle, 0, os.SEEK_SET)
                steady.moved = read_all(handle, shown, limit) != content
        if not steady.moved:
            return content, steady.status
    raise unsteady(shown)


class Steady:
    """Whether a file was written into within the `with` block. Two looks at its status tell, unless it is young."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.moved = False

    def __enter__(self) -> Self:
        now = time.time_ns()
        self.status = os.fstat(self._handle)
        self.young = max(self.status.st_mtime_ns, self.status.st_ctime_ns) > now - _YOUNG_NS
        return self

    def __exit__(self, *_: object) -> None:
        self.moved = self.moved or identity(self.status) != identity(os.fstat(self._handle))


def unsteady(shown: str) -> Conflict:
    return Conflict(f"{shown!r} is being written all the time", "try again when its writer rests")


def identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
