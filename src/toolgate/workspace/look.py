"""What is at a path right now: its content's hash, and enough to notice later that it was touched since."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from toolgate.core.errors import NotFound, TooLarge
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held, open_file
from toolgate.workspace.mounts import Mounts

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was found; no hash and no status means there was none."""

    hash: str | None = None
    status: os.stat_result | None = None

    def still(self, status: os.stat_result | None) -> bool:
        return _identity(self.status) == _identity(status)


def look(mounts: Mounts, path: MountPath) -> Seen:
    """Hash the file itself; a link in its place is refused, not followed."""
    mount, relative = mounts.resolve(path)
    try:
        handle = open_file(mount.root, relative, path.shown, follow=False)
    except NotFound:
        return Seen()
    with held(handle):
        status = os.fstat(handle)  # before the content, so that a write in between shows
        digest = hashlib.sha256()
        while chunk := os.read(handle, _CHUNK):
            digest.update(chunk)
    return Seen("sha256:" + digest.hexdigest(), status)


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


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
