"""What a program changed in its view of the project, read from the layer that its writes went to.

The layer was filled by somebody hostile: every name is opened by itself, below a handle, without following anything, and
how many there are and how large they are is counted while reading. A name that stands for a removed one is a character
device 0/0; a directory that hides what was there before has a mark among its attributes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolgate.sandbox.job import Altered

MAX_DEPTH = 64
"""One handle is open for each level."""
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class Layer:
    """`disk` bytes and `names` names are read at most; the rest is said in `dropped`."""

    disk: int
    names: int
    dropped: list[str] = field(default_factory=list)

    def read(self, handle: int) -> tuple[Altered, ...]:
        return tuple(self._directory(handle, "", 1))

    def _directory(self, handle: int, below: str, depth: int) -> Iterator[Altered]:
        for name in sorted(os.listdir(handle)):
            self.names -= 1
            if self.names < 0:
                self.dropped.append(f"changes after {below + _shown(name)}: there are too many")
                return
            path = below + name
            if not _is_text(name):
                self.dropped.append(f"{below + _shown(name)}: its name is not text")
                continue
            try:
                yield from self._entry(handle, name, path, depth)
            except OSError as error:
                self.dropped.append(f"{path}: {error.strerror}")

    def _entry(self, parent: int, name: str, path: str, depth: int) -> Iterator[Altered]:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            yield Altered(path, "gone")
        elif stat.S_ISREG(status.st_mode):
            yield from self._file(parent, name, path, mode)
        elif not stat.S_ISDIR(status.st_mode):
            yield Altered(path, "other")
        elif depth > MAX_DEPTH:
            self.dropped.append(f"{path}: it lies too deep")
        else:
            handle = os.open(name, DIRECTORY, dir_fd=parent)
            try:
                if _opaque(handle):
                    yield Altered(path, "gone")
                yield Altered(path, "directory", mode=mode)
                yield from self._directory(handle, path + "/", depth + 1)
            finally:
                os.close(handle)

    def _file(self, parent: int, name: str, path: str, mode: int) -> Iterator[Altered]:
        handle = os.open(name, READ, dir_fd=parent)
        try:
            content = content_of(handle, self.disk)
        finally:
            os.close(handle)
        if content is None:
            self.dropped.append(f"{path}: it is too large")
            return
        self.disk -= len(content)
        yield Altered(path, "file", content, mode)


def content_of(handle: int, room: int) -> bytes | None:
    """None where it is more than there is room for, whatever size it claims: files can have holes."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > room:
        return None
    parts: list[bytes] = []
    while room >= 0 and (part := os.read(handle, 1 << 20)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts) if room >= 0 else None


def _opaque(handle: int) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(handle, name) in (b"y", b"x"):
                return True
        except OSError:  # no such mark, or none of that kind here
            continue
    return False


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
