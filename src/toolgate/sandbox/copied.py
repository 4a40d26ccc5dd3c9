"""The project as a copy, where the kernel has no copy on write for us: made before the program, compared after it.

Only what the program may see is copied, so it is bounded: a large project is refused rather than copied in part.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from toolgate.core.errors import TooLarge
from toolgate.sandbox.job import Altered, View
from toolgate.sandbox.overlay import READ, Layer, content_of

MAX_BYTES = 64 << 20
MAX_NAMES = 10_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Copy:
    """What was copied: for each file its hash and bits, for each directory nothing."""

    owner: int = -1
    """Whose the copies are; -1: whoever makes them."""
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def make(self, view: View, goal: int) -> None:
        """Into the directory `goal`, which is a handle and empty."""
        handle = os.open(view.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._directory(handle, goal, "", frozenset(view.hidden))
        finally:
            os.close(handle)

    def _directory(self, origin: int, goal: int, below: str, hidden: frozenset[str]) -> None:
        for name in os.listdir(origin):
            path = below + name
            if path in hidden:
                continue
            status = os.stat(name, dir_fd=origin, follow_symlinks=False)
            self._room(0)
            if stat.S_ISDIR(status.st_mode):
                self._below(origin, goal, name, path, hidden)
            elif stat.S_ISREG(status.st_mode):
                self._file(origin, goal, name, path)
            elif stat.S_ISLNK(status.st_mode):
                self.links[path] = os.readlink(name, dir_fd=origin)
                os.symlink(self.links[path], name, dir_fd=goal)

    def _room(self, size: int) -> None:
        self.size += size
        names = len(self.files) + len(self.directories) + len(self.links)
        if self.size > MAX_BYTES or names >= MAX_NAMES:
            raise _too_large()

    def _below(self, origin: int, goal: int, name: str, path: str, hidden: frozenset[str]) -> None:
        os.mkdir(name, 0o755, dir_fd=goal)
        self.directories.add(path)
        inner = os.open(name, _DIRECTORY, dir_fd=origin)
        outer = os.open(name, _DIRECTORY, dir_fd=goal)
        try:
            self._directory(inner, outer, path + "/", hidden)
            self._give(outer)
        finally:
            os.close(inner)
            os.close(outer)

    def _file(self, origin: int, goal: int, name: str, path: str) -> None:
        source = os.open(name, READ, dir_fd=origin)
        try:
            mode = stat.S_IMODE(os.fstat(source).st_mode) & 0o777
            content = content_of(source, MAX_BYTES)
        finally:
            os.close(source)
        if content is None:
            raise _too_large()
        self._room(len(content))
        with os.fdopen(os.open(name, _WRITE, 0o600, dir_fd=goal), "wb") as stream:
            stream.write(content)
            os.fchmod(stream.fileno(), mode | 0o600)
            self._give(stream.fileno())
        self.files[path] = (hashlib.sha256(content).digest(), mode)

    def _give(self, handle: int) -> None:
        if self.owner >= 0:
            os.fchown(handle, self.owner, self.owner)

    def compare(self, handle: int, layer: Layer) -> tuple[Altered, ...]:
        """What is not as it was copied. The program may have made anything of it."""
        found = layer.read(handle)
        return (*self._gone(found, layer), *(each for each in found if self._differs(each)))

    def _differs(self, each: Altered) -> bool:
        if each.kind == "directory":
            return each.path not in self.directories
        if each.kind == "other":
            return each.path not in self.links
        known = self.files.get(each.path)
        if known is None:
            return True
        same = hashlib.sha256(each.content).digest() == known[0]
        return not same or (each.mode or 0) | 0o600 != known[1] | 0o600

    def _gone(self, found: tuple[Altered, ...], layer: Layer) -> Iterator[Altered]:
        """Innermost names are told by the directory that went with them. What could not be read has not gone."""
        there = {each.path: each.kind for each in found}
        lost = {text.partition(": ")[0] for text in layer.dropped}
        names = [(path, "file") for path in self.files] + [(path, "directory") for path in self.directories]
        for path, kind in sorted(names):
            above = path.rpartition("/")[0]
            if there.get(path) == kind or path in lost or layer.names < 0:
                continue
            if not above or there.get(above) == "directory":
                yield Altered(path, "gone")


def copy_into(view: View, directory: Path, owner: int = -1) -> Copy:
    """Make the copy in a directory that exists and is empty."""
    copy = Copy(owner)
    handle = os.open(directory, _DIRECTORY)
    try:
        copy.make(view, handle)
    finally:
        os.close(handle)
    return copy


def _too_large() -> TooLarge:
    return TooLarge(
        f"the project has more than {MAX_NAMES:,} files or {MAX_BYTES >> 20} MiB, and here it must be copied for a program to see it",
        "give the program what it needs in `files`, or run where user namespaces and overlayfs are allowed",
    )
