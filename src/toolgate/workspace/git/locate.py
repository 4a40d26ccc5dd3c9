"""Where a repository is in a mount. Only one that lies wholly inside counts, or one that the mount's owner lets a linked
working directory lead to; no parent directory is searched."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolgate.core.errors import CallError, NotFound, Unavailable
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import Root, held, open_directory, open_file
from toolgate.workspace.git.linked import Linked, Links
from toolgate.workspace.look import read_all
from toolgate.workspace.mounts import Mount, Mounts

_BARE = ("HEAD", "objects", "refs")


@dataclass(frozen=True, slots=True)
class Place:
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


def locate(mounts: Mounts, path: MountPath, links: Links) -> Place:
    """The repository that a path belongs to: the nearest one upwards, up to the mount's root."""
    mount, relative = mounts.resolve(path)
    for top in _upwards(relative):
        git = ".git" if top == "." else f"{top}/.git"
        kind = _kind(mount.root, git)
        if kind == "directory":
            return Place(mount, top, git, bare=False)
        if kind == "file" and top == "." and mounts.rules(path).worktree:
            return Place(mount, top, git, bare=False, linked=links.follow(mount, git))
        if kind:
            raise Unavailable(
                f"{git} is a {kind}, which leads to a repository elsewhere",
                "make the repository's main working directory the mount, or, if this was made by `git worktree`, "
                f"let a human add `worktree: true` to the mount {mount.name} in toolgate.yaml",
            )
    if all(_kind(mount.root, name) for name in _BARE):
        return Place(mount, ".", ".", bare=True)
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
