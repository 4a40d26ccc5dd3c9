"""Walking a directory of a mount by handles, in path order, following no link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from toolgate.workspace.confine import held
from toolgate.workspace.search.selection import Selection

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 128


class TooMany(Exception):
    """There are more names than this walk was allowed to look at."""


@dataclass(slots=True)
class Entry:
    relative: str
    name: str
    parent: int
    """The handle of its directory; valid until the walk goes on."""
    directory: bool

    def status(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)


@dataclass(slots=True)
class Walk:
    """`room` is how many names may be looked at in all."""

    selection: Selection
    room: int
    max_depth: int = MAX_DEPTH
    directories: bool = False
    """Whether directories are given too."""

    def entries(self, handle: int, start: str, depth: int = 1) -> Iterator[Entry]:
        """Everything below an open directory whose path in the mount is `start`."""
        prefix = "" if start == "." else start + "/"
        for name, is_directory in self._names(handle):
            relative = prefix + name
            if not is_directory:
                if self.selection.takes(relative, name):
                    yield Entry(relative, name, handle, False)
                continue
            if not self.selection.enters(relative, name):
                continue
            if self.directories:
                yield Entry(relative, name, handle, True)
            if depth < self.max_depth:
                yield from self._below(handle, name, relative, depth)

    def _below(self, handle: int, name: str, relative: str, depth: int) -> Iterator[Entry]:
        try:
            below = os.open(name, _DIRECTORY, dir_fd=handle)
        except OSError:  # gone, swapped for a link, or not ours to read
            return
        with held(below):
            yield from self.entries(below, relative, depth + 1)

    def _names(self, handle: int) -> list[tuple[str, bool]]:
        """Directories and regular files, in the order of their bytes."""
        found: list[tuple[str, bool]] = []
        with os.scandir(handle) as entries:
            for entry in entries:
                self.room -= 1
                if self.room < 0:
                    raise TooMany
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, True))
                elif entry.is_file(follow_symlinks=False):
                    found.append((entry.name, False))
        found.sort(key=lambda item: os.fsencode(item[0]))
        return found


def path_order(relative: str) -> list[bytes]:
    return os.fsencode(relative).split(b"/")
