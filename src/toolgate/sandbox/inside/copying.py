"""The project as a copy, where the kernel has no layers for us. Only what the program may see is copied, up to a limit."""

from __future__ import annotations

import os
import stat

MAX_BYTES = 64 << 20
MAX_NAMES = 10_000
MAX_DEPTH = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyTooLarge(OSError):
    """More than is copied for a program."""


class Copy:
    def __init__(self, hidden: list[str], owner: int | None) -> None:
        self._hidden, self._owner = frozenset(hidden), owner
        self._bytes, self._names = MAX_BYTES, MAX_NAMES

    def directory(self, origin: int, goal: int, below: str = "", depth: int = 0) -> None:
        """What is in the one into the other; both are handles."""
        for name in os.listdir(origin):
            path = below + name
            if path in self._hidden:
                continue
            self._names -= 1
            kind = os.stat(name, dir_fd=origin, follow_symlinks=False).st_mode
            if self._names < 0 or depth > MAX_DEPTH:
                raise CopyTooLarge(f"the project has more than {MAX_NAMES:,} files, or lies too deep")
            if stat.S_ISDIR(kind):
                self._below(origin, goal, name, path, depth)
            elif stat.S_ISREG(kind):
                self._file(origin, goal, name)
            elif stat.S_ISLNK(kind):
                os.symlink(os.readlink(name, dir_fd=origin), name, dir_fd=goal)

    def _below(self, origin: int, goal: int, name: str, path: str, depth: int) -> None:
        os.mkdir(name, 0o755, dir_fd=goal)
        source, target = os.open(name, _DIRECTORY, dir_fd=origin), os.open(name, _DIRECTORY, dir_fd=goal)
        try:
            self.directory(source, target, path + "/", depth + 1)
            self._give(target)
        finally:
            os.close(source)
            os.close(target)

    def _file(self, origin: int, goal: int, name: str) -> None:
        source = os.open(name, _READ, dir_fd=origin)
        with os.fdopen(source, "rb") as reading:
            content = reading.read(self._bytes + 1)
            mode = stat.S_IMODE(os.fstat(source).st_mode) & 0o777
        self._bytes -= len(content)
        if self._bytes < 0:
            raise CopyTooLarge(f"the project has more than {MAX_BYTES >> 20} MiB")
        with os.fdopen(os.open(name, _WRITE, 0o600, dir_fd=goal), "wb") as writing:
            writing.write(content)
            os.fchmod(writing.fileno(), mode)
            self._give(writing.fileno())

    def _give(self, handle: int) -> None:
        if self._owner is not None:
            os.fchown(handle, self._owner, self._owner)
