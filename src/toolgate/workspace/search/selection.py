"""Which files of a mount a search or a listing may show: the caller's globs, and above them the mount's rules.

The same decision serves both engines: the walk in process asks it for every name, what rg found is asked again. Where a
search begins, each path is opened once, by the rules for reading, and named as it really is.
"""

from __future__ import annotations

import os
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
from toolgate.workspace.confine import Root
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.proof import note_tree
from toolgate.workspace.reading import open_to_list, open_to_read
from toolgate.workspace.search.query import EXCLUDED
from toolgate.workspace.search.tree import path_order


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
