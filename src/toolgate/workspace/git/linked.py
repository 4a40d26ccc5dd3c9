"""A linked working directory (`git worktree`), where the owner of the mount allows it.

Its `.git` is a file that names a directory of the repository it belongs to, outside the mount. Anybody can write such a
file; only whoever can write to that repository can have it name the working directory in turn. So the two must name
each other, and everything of the repository is then opened beneath a handle of it.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolgate.core.errors import CallError, Unavailable
from toolgate.workspace.confine import Root, held, open_file
from toolgate.workspace.look import read_all
from toolgate.workspace.mounts import Mount

_FILE = re.compile(rb"gitdir: ([^\x00\n]+)\n?")
_LIMIT = 4096
_OWN = frozenset({"HEAD", "index"})
"""What each working directory has for itself; refs, objects and settings are the repository's."""


@dataclass(frozen=True, slots=True)
class Linked:
    root: Root
    """The repository's git directory."""
    directory: Path
    own: str
    """The part of it that belongs to this working directory."""

    def name(self, name: str) -> str:
        return f"{self.own}/{name}" if name in _OWN else name


@dataclass(slots=True)
class Links:
    """The repositories that working directories of the mounts are linked to, each opened once."""

    _known: dict[tuple[int, int, Path, str], Linked] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, mount: Mount, file: str) -> Linked:
        """`file` is the working directory's `.git`. Looked at anew each time: a link may be taken back."""
        with self._lock, suppress(CallError, OSError, ValueError):
            handle = open_file(mount.root, file, file, follow=False)
            with held(handle):
                named = _FILE.fullmatch(read_all(handle, file, _LIMIT))
                status = os.fstat(handle)
            if named:
                return self._opened(mount, _absolute(named[1], (mount.directory / file).parent), status)
        raise Unavailable(
            f"{file} is a file, and the repository that it names does not name this working directory",
            "repair the link from the main working directory: `git worktree repair`",
        )

    def _opened(self, mount: Mount, own: Path, file: os.stat_result) -> Linked:
        """Kept only where the two name each other: the file may be another one each time."""
        common = own.parent.parent
        if own.parent.name != "worktrees":
            raise ValueError(own)
        with held(os.open(common, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as handle:
            linked = Linked(Root(handle, mount.root.opener), common, f"worktrees/{own.name}")
            if not _names(linked, file):
                raise ValueError(own)
            status = os.fstat(handle)
            key = (status.st_dev, status.st_ino, common, own.name)
            if key not in self._known:
                self._known[key] = replace(linked, root=replace(linked.root, handle=os.dup(handle)))
        return self._known[key]

    def close(self) -> None:
        for linked in self._known.values():
            os.close(linked.root.handle)
        self._known = {}


def _names(linked: Linked, file: os.stat_result) -> bool:
    """Whether the repository says of this very file that it belongs to it."""
    if _read(linked, "commondir").strip() != b"../..":
        return False
    back = _absolute(_read(linked, "gitdir").rstrip(b"\n"), linked.directory / linked.own)
    return os.path.samestat(os.stat(back, follow_symlinks=False), file)


def _read(linked: Linked, name: str) -> bytes:
    path = f"{linked.own}/{name}"
    handle = open_file(linked.root, path, path, follow=False)
    with held(handle):
        return read_all(handle, path, _LIMIT)


def _absolute(written: bytes, base: Path) -> Path:
    """Git writes whole paths, or with `worktree.useRelativePaths` ones from where they are written."""
    return Path(os.path.normpath(base / os.fsdecode(written)))
