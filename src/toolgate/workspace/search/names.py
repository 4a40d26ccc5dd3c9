"""A mount of which all names are known, and every new one is heard of.

rg has to be told what to leave out. Told as patterns, it tries them on every file it comes to, which takes it longer
than reading most of them. Of a mount whose names are known it is told the few paths themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from toolgate.core.records import dataclass, field
from toolgate.policy.hard import MountRules
from toolgate.workspace import inotify
from toolgate.workspace.confine import STEP, held
from toolgate.workspace.search.query import EXCLUDED
from toolgate.workspace.search.selection import Selection
from toolgate.workspace.staged import TEMPORARY
from toolgate.workspace.watch import Watch

MAX_DIRECTORIES = 16_384
MAX_NAMES = 250_000
MAX_SHUT = 128
MAX_TOLD = 8 << 10
"""Characters of all that rg is told."""
MAX_DEPTH = 128
MAX_TOUCHED = 4096
_SHARE = 16
"""Of all watches that a user may have, one mount takes this part at most: editors live on them too."""


class UnknownNames(Exception):
    """The names of this mount cannot be known, or not any more."""


@dataclass(slots=True)
class Names:
    selection: Selection
    """Of all files, but for those in directories that are usually left out."""
    watch: Watch
    _directories: dict[int, str] = field(default_factory=dict)
    """Watched directories by the number of their watch, each with what comes before the names in it."""
    _prefixes: set[str] = field(default_factory=set)
    _told: int = 0
    _shut: dict[str, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    heard: int = 0
    """How many names have come so far."""
    _touched: dict[str, int] = field(default_factory=dict)
    """Paths that something came to, each with when: not long ago."""
    _since: int = 0

    def shut(self) -> tuple[str, ...] | None:
        """The paths that the rules keep shut and that rg would come to; None where they are not known any more."""
        with self._lock:
            said = self.watch.heard()
            if said is None:
                return None
            try:
                for event in inotify.events(said):
                    self._hear(event)
            except UnknownNames:
                self.watch.close()
                return None
            return tuple(self._shut)

    def _hear(self, event: inotify.WatchEvent) -> None:
        if not event.name:
            if event.watch < 0:
                raise UnknownNames("more has happened than the queue could hold")
            return
        if event.name.startswith(TEMPORARY) and not event.directory:
            return  # every write of ours has one; rg may come to it, and what it says of it is dropped
        relative = self._directories[event.watch] + event.name
        if relative + "/" in self._prefixes:
            raise UnknownNames("something has come in the place of a directory")
        if self.judge(relative, event.name, event.directory):
            raise UnknownNames("there is a new directory, with names of its own")
        self._touch(relative)

    def _touch(self, relative: str) -> None:
        self.heard += 1
        if len(self._touched) >= MAX_TOUCHED:
            self._touched.clear()
            self._since = self.heard
        self._touched[relative] = self.heard

    def touched(self, mark: int, names: Iterable[str]) -> bool:
        """Whether something came to one of these paths since `heard` was `mark`: what was read there in between may
        have been something else."""
        with self._lock:
            if self.heard == mark:
                return False
            return mark < self._since or any(self._touched.get(name, 0) > mark for name in names)

    def judge(self, relative: str, name: str, directory: bool) -> bool:
        """Whether it is a directory to look into."""
        if self.selection.excluded.match(self.selection.mount, relative, name):
            return False
        if self.selection.enters(relative, name):
            return directory
        if relative in self._shut:
            return False
        self._told += len(relative)
        if len(self._shut) >= MAX_SHUT or self._told > MAX_TOLD or not relative.isprintable():
            raise UnknownNames(
                "there is too much that rg would have to be told, or something it cannot be told"
            )
        self._shut[relative] = None
        return False

    def watched(self, number: int, prefix: str) -> bool:
        """False for a directory that was come to before, by another path: it is mounted twice, or was moved."""
        if number in self._directories:
            return False
        self._directories[number] = prefix
        self._prefixes.add(prefix)
        return True

    def cover(self, directory: str) -> bool:
        """Whether it was looked into: somebody may ask for one that is usually left out."""
        return ("" if directory == "." else directory + "/") in self._prefixes


def learn(root: int, rules: MountRules, stop: Callable[[], bool]) -> Names | None:
    """All names below the open root of a mount. None where they cannot be known, or where it was stopped."""
    queue = inotify.begin() if inotify.available() and inotify.local(root) else None
    if queue is None:
        return None
    names = Names(Selection(rules, "", EXCLUDED), Watch(queue))
    room = min(MAX_DIRECTORIES, inotify.most_watches() // _SHARE)
    try:
        _Learning(names, queue, os.fstat(root).st_dev, stop, room, MAX_NAMES).directory(root, "", 1)
    except (OSError, UnknownNames):
        names.watch.close()
        return None
    except BaseException:
        names.watch.close()
        raise
    return names


@dataclass(slots=True)
class _Learning:
    names: Names
    queue: int
    device: int
    stop: Callable[[], bool]
    room: int
    room_for_names: int

    def directory(self, handle: int, prefix: str, depth: int) -> None:
        """Watch first, list then: a name that comes in between is an event. One file system: of what is mounted into
        another nothing is heard."""
        self.room -= 1
        if self.stop() or self.room < 0 or depth > MAX_DEPTH or os.fstat(handle).st_dev != self.device:
            raise UnknownNames
        number = inotify.add(self.queue, handle, inotify.NEW_NAMES)
        if number is None or not self.names.watched(number, prefix):
            raise UnknownNames
        for name in self._below(handle, prefix):
            with suppress(FileNotFoundError), held(os.open(name, STEP, dir_fd=handle)) as inner:
                self.directory(inner, f"{prefix}{name}/", depth + 1)

    def _below(self, handle: int, prefix: str) -> list[str]:
        found: list[str] = []
        with os.scandir(handle) as items:
            for item in items:
                self.room_for_names -= 1
                if self.room_for_names < 0:
                    raise UnknownNames
                if self.names.judge(prefix + item.name, item.name, item.is_dir(follow_symlinks=False)):
                    found.append(item.name)
        return found
