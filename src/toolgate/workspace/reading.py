"""Opening for reading: the rules of a mount hold for what a path leads to, not only for how it is spelled.

A path without links is what it says. One with links is walked name by name, and every name on the way is judged
before it is opened, so that `notes.txt -> .env` is refused in the same words whether or not there is an `.env`.
"""

from __future__ import annotations

import os
import stat

from toolgate.core.errors import BlockedPath, NotFound
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import Root, open_directory, open_file
from toolgate.workspace.look import status_of
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.near import advice
from toolgate.workspace.walk import open_by_walking


def open_to_read(mounts: Mounts, path: MountPath) -> int:
    """A handle of a regular file that this mount lets tools read."""
    mount, relative = mounts.resolve(path)
    rules = mounts.rules(path)
    judge(rules, path, path)
    try:
        try:
            handle = open_file(mount.root, relative, path.shown, follow=False)
        except BlockedPath:
            handle = open_file(_judging(mount.root, rules, path), relative, path.shown)
    except NotFound as error:
        raise NotFound(error.message, advice(mounts, path)) from None
    return _checked_links(handle, rules, path)


def open_to_list(mounts: Mounts, path: MountPath) -> tuple[int, MountPath]:
    """A handle of a directory, and the path that it really has."""
    mount, relative = mounts.resolve(path)
    rules = mounts.rules(path)
    judge(rules, path, path)
    try:
        return open_directory(mount.root, relative, path.shown, follow=False), path
    except (BlockedPath, NotFound):
        names: list[str] = []
        root = _judging(mount.root, rules, path, names)
        try:
            handle = open_directory(root, relative, path.shown)
        except NotFound:
            raise _no_directory(mounts, path) from None
    return handle, MountPath(f"{path.mount}:{'/'.join(names) or '.'}")


def _no_directory(mounts: Mounts, path: MountPath) -> NotFound:
    """Something that is there and may be seen is not said to be missing."""
    found = status_of(mounts, path)
    if found is None or stat.S_ISLNK(found.st_mode):
        return NotFound(f"there is no {path.shown!r}", advice(mounts, path))
    return NotFound(f"{path.shown!r} is not a directory", "name a directory; `fs.read` reads a file")


def judge(rules: MountRules, path: MountPath, real: MountPath) -> None:
    refusal = rules.refuse(real, written=False)
    if refusal is not None:
        raise BlockedPath(
            f"{path.shown!r} is, or leads to, a name that the mount {path.mount} keeps shut",
            "choose another path, or open the name in `mounts` of toolgate.yaml",
        )


def _judging(root: Root, rules: MountRules, path: MountPath, seen: list[str] | None = None) -> Root:
    """The same root, opened by a walk that judges every name."""

    def visit(names: list[str]) -> None:
        judge(rules, path, MountPath(f"{path.mount}:{'/'.join(names) or '.'}"))
        if seen is not None:
            seen[:] = names

    def opener(handle: int, relative: str, flags: int, follow: bool) -> int:
        return open_by_walking(handle, relative, flags, follow, visit)

    return Root(root.handle, opener)


def _checked_links(handle: int, rules: MountRules, path: MountPath) -> int:
    status = os.fstat(handle)
    if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and not rules.hard_links:
        os.close(handle)
        raise BlockedPath(
            f"{path.shown!r} has several names (hard links), and one may be outside the mount",
            "replace it by a copy, or set `hard_links: true` for the mount",
        )
    return handle
