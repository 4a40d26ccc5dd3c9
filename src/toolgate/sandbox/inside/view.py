"""The project as a program sees it: without the hidden names, read-only or as a copy on write."""

from __future__ import annotations

import os
import stat
from typing import Any

from . import overlaid
from .copying import MAX_BYTES, MAX_NAMES, Copy
from .kernel import (
    ATTR_NODEV,
    ATTR_NOEXEC,
    ATTR_NOSUID,
    ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    mount,
    restrict_mount,
    unmount,
)
from .order import PROJECT

_NOTHING, _EMPTY, _STAGE = "/.nothing", "/.empty", "/.stage"


def open_root(view: dict[str, Any]) -> int:
    return os.open(view["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def make_covers(base: str) -> None:
    """What lies over a hidden name: a file nobody can read, a directory with nothing in it."""
    os.close(os.open(base + _NOTHING, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))
    os.mkdir(base + _EMPTY, 0o555)


def cover(base: str, path: str) -> None:
    """Put nothing where something is. A name that is not there needs no cover; one that is a link is refused."""
    target = base + path
    try:
        kind = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(kind):
        raise OSError(f"{path} is a link: it cannot be covered")
    mount(base + (_EMPTY if stat.S_ISDIR(kind) else _NOTHING), target, None, MS_BIND)
    restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC)


def show(base: str, root: int, view: dict[str, Any], owner: int | None) -> tuple[str, int]:
    """How it is shown, and a handle of where the program's changes will be, or -1. `root` is closed."""
    stage = base + _STAGE
    os.mkdir(stage, 0o700)
    try:
        return "layers", overlaid.mount_layers(stage, base + PROJECT, root, view, owner, os.getuid() == 0)
    except OSError:  # no overlayfs here, or not on these files
        if os.path.ismount(stage):
            unmount(stage)
        return "copy", _copied(base + PROJECT, root, view, owner)
    finally:
        os.close(root)
        os.rmdir(stage)


def _copied(target: str, root: int, view: dict[str, Any], owner: int | None) -> int:
    limits = f"size={MAX_BYTES + view['disk']},nr_inodes={MAX_NAMES + view['inodes']},mode=755"
    whose = "" if owner is None else f",uid={owner},gid={owner}"
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, limits + whose)
    handle = copy_to(target, root, view, owner)
    if not view["writable"]:
        restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    return handle


def copy_to(target: str, root: int, view: dict[str, Any], owner: int | None) -> int:
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    Copy(view["hidden"], owner).directory(root, handle)
    return handle
