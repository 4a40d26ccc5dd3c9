"""Walking a directory of a mount by handles, in path order, following no link."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.workspace.search.selection import Selection

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 128
_SECOND = 1_000_000_000
_COARSE_NS, _FINE_NS = 2 * _SECOND, _SECOND // 20
"""How old a change must be, so that no later one has its time: on file systems that count seconds, and on others."""
Listed = tuple[int, int, tuple[tuple[str, bool], ...]]
"""A directory's change time, how many names were in it, and those that count."""
Memory = dict[tuple[int, int], Listed]
"""Directories by device and number. For local file systems only, where every new name changes the time."""


class TooMany(Exception):
    """There are more names than this walk was allowed to look at."""


@dataclass(slots=True)
class SearchEntry:
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
    memory: Memory | None = None
    """What was in directories that are as they were is not read again."""

    def entries(self, handle: int, start: str) -> Iterator[SearchEntry]:
        """Everything below an open directory whose path in the mount is `start`."""
        levels = [_Level(handle, "" if start == "." else start + "/", self._names(handle))]
        try:
            while levels:
                here = levels[-1]
                if not here.names:
                    levels.pop().close(handle)
                    continue
                name, is_directory = here.names.pop()
                relative = here.prefix + name
                if not is_directory:
                    if self.selection.takes(relative, name):
                        yield SearchEntry(relative, name, here.handle, False)
                    continue
                if not self.selection.enters(relative, name):
                    continue
                if self.directories:
                    yield SearchEntry(relative, name, here.handle, True)
                if len(levels) < self.max_depth:
                    self._enter(levels, name, relative)
        finally:
            for level in levels:
                level.close(handle)

    def _enter(self, levels: list[_Level], name: str, relative: str) -> None:
        try:
            below = os.open(name, _DIRECTORY, dir_fd=levels[-1].handle)
        except OSError:  # gone, swapped for a link, or not ours to read
            return
        levels.append(_Level(below, relative + "/", []))  # whatever comes of it, it is closed
        levels[-1].names = self._names(below)

    def _names(self, handle: int) -> list[tuple[str, bool]]:
        """Directories and regular files, the last one first in the order of their bytes."""
        if self.memory is None:
            return self._read(handle)
        status, room = os.fstat(handle), self.room  # before reading, so that a change in between shows
        key, changed = (status.st_dev, status.st_ino), status.st_ctime_ns
        known = self.memory.get(key)
        if known is not None and known[0] == changed:
            self.room -= known[1]
            if self.room < 0:
                raise TooMany
            return list(known[2])
        found = self._read(handle)
        if changed < time.time_ns() - (_FINE_NS if changed % _SECOND else _COARSE_NS):
            self.memory[key] = (changed, room - self.room, tuple(found))
        return found

    def _read(self, handle: int) -> list[tuple[str, bool]]:
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
        if len(found) > 1:
            found.sort(key=_in_bytes, reverse=True)
        return found


@dataclass(slots=True)
class _Level:
    """A directory on the way down, and what is still to be looked at in it."""

    handle: int
    prefix: str
    names: list[tuple[str, bool]]

    def close(self, outermost: int) -> None:
        if self.handle != outermost:
            os.close(self.handle)


def _in_bytes(item: tuple[str, bool]) -> bytes:
    return os.fsencode(item[0])


def path_order(relative: str) -> list[bytes]:
    return os.fsencode(relative).split(b"/")
