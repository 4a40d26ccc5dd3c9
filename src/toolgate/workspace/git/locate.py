"""Where a repository is in a mount. Only one that lies wholly inside counts, or one that the mount's owner lets a linked
working directory lead to; no parent directory is searched.

The `.git` of a linked working directory (`git worktree`) is a file that names a directory of the repository it belongs to,
outside the mount. Anybody can write such a file; only whoever can write to that repository can have it name the working
directory in turn. So the two must name each other, and everything of the repository is then opened beneath a handle of it.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolgate.core.errors import CallError, NotFound, Unavailable
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import Root, held, open_directory, open_file
from toolgate.workspace.mounts import Mount, Mounts
from toolgate.workspace.reading import read_all

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


_BARE = ("HEAD", "objects", "refs")


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """A repository: the mount, the working directory in it (`.` is the mount itself) and its git directory."""

    mount: Mount
    top: str
    git: str
    bare: bool
    linked: Linked | None = None
    """The repository of a linked working directory, which is elsewhere; `git` is then the file that says so."""

    @property
    def work_tree(self) -> Path:
        return self.mount.directory / self.top

    @property
    def git_dir(self) -> Path:
        """For git to open objects under, after they were checked; we ourselves go through the root's handle."""
        return self.linked.directory if self.linked else self.mount.directory / self.git

    def open(self, name: str) -> int:
        """A directory of the git directory, following no link."""
        if self.linked:
            return open_directory(self.linked.root, name, name, follow=False)
        return open_directory(self.mount.root, f"{self.git}/{name}", name, follow=False)

    def mount_path(self, name: str) -> MountPath:
        """A path in the repository as the mount's rules know it."""
        return MountPath(f"{self.mount.name}:{name if self.top == '.' else f'{self.top}/{name}'}")

    def inside(self, path: MountPath) -> str:
        """A path of the mount, relative to this repository; `.` is all of it."""
        if self.top == ".":
            return path.relative
        return path.relative[len(self.top) + 1 :] or "."

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file of the git directory, following no link."""
        if self.linked:
            return read_beneath(self.linked.root, self.linked.name(name), limit)
        return read_beneath(self.mount.root, f"{self.git}/{name}", limit)

    def status(self, name: str) -> os.stat_result | None:
        name = self.linked.name(name) if self.linked else name
        above, _, last = name.rpartition("/")
        try:
            handle = self.open(above or ".")
        except CallError:
            return None
        with held(handle), suppress(OSError):
            return os.stat(last, dir_fd=handle, follow_symlinks=False)
        return None


def read_beneath(root: Root, name: str, limit: int) -> bytes | None:
    try:
        handle = open_file(root, name, name, follow=False)
    except NotFound:
        return None
    with held(handle):
        return read_all(handle, name, limit)


def locate(mounts: Mounts, path: MountPath, links: Links) -> RepositoryPlace:
    """The repository that a path belongs to: the nearest one upwards, up to the mount's root."""
    mount, relative = mounts.resolve(path)
    for top in _upwards(relative):
        git = ".git" if top == "." else f"{top}/.git"
        kind = _kind(mount.root, git)
        if kind == "directory":
            return RepositoryPlace(mount, top, git, bare=False)
        if kind == "file" and top == "." and mounts.rules(path).worktree:
            return RepositoryPlace(mount, top, git, bare=False, linked=links.follow(mount, git))
        if kind:
            raise Unavailable(
                f"{git} is a {kind}, which leads to a repository elsewhere",
                "make the repository's main working directory the mount, or, if this was made by `git worktree`, "
                f"let a human add `worktree: true` to the mount {mount.name} in toolgate.yaml",
            )
    if all(_kind(mount.root, name) for name in _BARE):
        return RepositoryPlace(mount, ".", ".", bare=True)
    raise NotFound(
        f"the mount {mount.name} has no git repository",
        "run `git init` there, or mount the repository's root",
    )


def _upwards(relative: str) -> list[str]:
    parts = [] if relative == "." else relative.split("/")
    return ["/".join(parts[:count]) or "." for count in range(len(parts), -1, -1)]


def _kind(root: Root, name: str) -> str:
    parent, _, last = name.rpartition("/")
    try:
        handle = open_directory(root, parent or ".", name, follow=False)
    except CallError:
        return ""
    with held(handle):
        try:
            mode = os.stat(last, dir_fd=handle, follow_symlinks=False).st_mode
        except OSError:
            return ""
    if stat.S_ISDIR(mode):
        return "directory"
    return "symbolic link" if stat.S_ISLNK(mode) else "file"
