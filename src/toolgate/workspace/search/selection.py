"""Which files of a mount a search or a listing may show: the caller's globs, and above them the mount's rules.

The same decision serves both engines: the walk in process asks it for every name, what rg found is asked again. Where a
search begins, each path is opened once, by the rules for reading, and named as it really is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import groupby

from toolgate.core.errors import BlockedPath, ConfigError, InvalidArgs, NotFound
from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.policy.dotfiles import hidden
from toolgate.policy.globs import Glob, PathGlob, path_glob, text_glob
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import STEP, Root
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import note_tree, open_to_list, open_to_read
from toolgate.workspace.search.query import EXCLUDED

# Walking a directory of a mount by handles, in path order, following no link.

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
            below = os.open(name, STEP, dir_fd=levels[-1].handle)
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
            found.sort(key=lambda item: os.fsencode(item[0]), reverse=True)
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


def path_order(relative: str) -> list[bytes]:
    return os.fsencode(relative).split(b"/")


class NameGlobs:
    """Globs without a slash are about a name at any depth, those with one about the path from the mount."""

    def __init__(self, texts: Sequence[str], mount: str) -> None:
        self.texts = tuple(texts)
        try:
            self._names: tuple[Glob, ...] = tuple(text_glob(text) for text in texts if "/" not in text)
            self._paths: tuple[PathGlob, ...] = tuple(path_glob(text, mount) for text in texts if "/" in text)
        except ConfigError as error:
            raise InvalidArgs(error.message, error.fix) from None
        self.plain = frozenset(glob.text for glob in self._names if not set("*?[{") & set(glob.text))
        self._wild = tuple(glob for glob in self._names if glob.text not in self.plain)

    def match(self, mount: str, relative: str, name: str) -> bool:
        if name in self.plain or (self._wild and any(glob.matches(name) for glob in self._wild)):
            return True
        if not self._paths:
            return False
        path = MountPath(f"{mount}:{relative}")
        return any(glob.matches(path) for glob in self._paths)


@lru_cache(maxsize=256)
def name_globs(texts: tuple[str, ...], mount: str) -> NameGlobs:
    """Compiled once: most calls give none of their own."""
    return NameGlobs(texts, mount)


class Selection:
    """Decides about one name after the other; of a directory that was refused nothing is asked any more."""

    def __init__(
        self, rules: MountRules, files: str = "", excluded: Sequence[str] = (), *, dotfiles: bool = False
    ) -> None:
        self.rules = rules
        self.mount = rules.name
        self.files = name_globs((files,), rules.name) if files else None
        self.excluded = name_globs(tuple(excluded), rules.name)
        self._dotfiles = dotfiles
        self._directories: dict[str, bool] = {}

    @property
    def usual(self) -> bool:
        """Whether the caller chose no files by their names."""
        return self.files is None and self.excluded.texts == EXCLUDED

    def enters(self, relative: str, name: str) -> bool:
        """Whether a directory is walked into, given that the walk came to it."""
        return self._shows(relative, name) and not self.excluded.match(self.mount, relative, name)

    def takes(self, relative: str, name: str) -> bool:
        """Whether a file is looked at, given that the walk came to it."""
        if self.files is not None and not self.files.match(self.mount, relative, name):
            return False
        return self._shows(relative, name) and not self.excluded.match(self.mount, relative, name)

    def reaches(self, start: str, relative: str) -> bool:
        """Whether a walk from `start` would have come to this file and taken it."""
        parent, _, name = relative.rpartition("/")
        return self._walked(start, parent) and self.takes(relative, name)

    def _walked(self, start: str, directory: str) -> bool:
        if directory == start or (not directory and start == "."):
            return True
        if not directory:
            return False  # above the start: not ours
        known = self._directories.get(directory)
        if known is None:
            parent, _, name = directory.rpartition("/")
            known = self._walked(start, parent) and self.enters(directory, name)
            self._directories[directory] = known
        return known

    def _shows(self, relative: str, name: str) -> bool:
        """The rules of the mount, asked in full only where the name alone does not settle it."""
        if self.rules.plain(name) and not _dotted(relative):
            return True
        refusal = self.rules.refuse(MountPath(f"{self.mount}:{relative}"), written=False)
        return refusal is None or (self._dotfiles and refusal.rule == "hard:dotfile")


def _dotted(relative: str) -> bool:
    """Whether any name on the way begins with a dot: an open directory may still show only some of its files."""
    if relative.isascii():
        return relative.startswith(".") or "/." in relative
    return any(hidden(part) for part in relative.split("/"))


@dataclass(frozen=True, slots=True)
class Start:
    """A directory or a file to search, open."""

    root: Root
    mount: str
    relative: str
    handle: int
    directory: bool
    selection: Selection
    hard_links: bool

    def shown(self, relative: str) -> str:
        return MountPath(f"{self.mount}:{relative}").shown


@contextmanager
def opened(
    mounts: Mounts, paths: Sequence[MountPath], files: str, excluded: Sequence[str]
) -> Iterator[list[list[Start]]]:
    """The starts, by mount, in path order; one that lies below another is left out."""
    with ExitStack() as stack:
        found = [_open(mounts, path, stack, files, excluded) for path in dict.fromkeys(paths)]
        found.sort(key=lambda start: (start.mount, path_order(start.relative)))
        yield [_outermost(list(group)) for _, group in groupby(found, key=lambda start: start.mount)]


def _open(mounts: Mounts, path: MountPath, stack: ExitStack, files: str, excluded: Sequence[str]) -> Start:
    mount, _ = mounts.resolve(path)
    rules = mounts.rules(path)
    selection = Selection(rules, files, excluded)
    try:
        handle, real = open_to_list(mounts, path)
        directory = True
    except (NotFound, BlockedPath):
        handle, real, directory = open_to_read(mounts, path), path, False
    stack.callback(os.close, handle)
    if directory and not rules.hard_links:
        note_tree(mounts, path, handle, real, selection.enters)
    else:  # of a single file the search is as quick as its proof; one with other names changes unseen
        spoil()
    return Start(mount.root, path.mount, real.relative, handle, directory, selection, rules.hard_links)


def _outermost(starts: list[Start]) -> list[Start]:
    kept: list[Start] = []
    for start in starts:
        if not any(_within(start.relative, outer) for outer in kept):
            kept.append(start)
    return kept


def _within(relative: str, outer: Start) -> bool:
    if relative == outer.relative:
        return True
    return outer.directory and (outer.relative == "." or relative.startswith(outer.relative + "/"))
