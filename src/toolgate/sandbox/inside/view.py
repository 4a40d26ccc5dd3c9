"""The project as a program sees it: read-only, with an empty file or directory where a hidden name is.

A view that can be written (copy on write) is another way of doing `show`; everything else stays as it is.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from .kernel import ATTR_NODEV, ATTR_NOEXEC, ATTR_NOSUID, ATTR_RDONLY, MS_BIND, MS_REC, mount, restrict_mount
from .order import PROJECT

_NOTHING, _EMPTY = "/.nothing", "/.empty"


def open_root(view: dict[str, Any]) -> int:
    return os.open(view["root"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


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


def show(base: str, root: int, view: dict[str, Any]) -> None:
    if view.get("writable"):
        raise OSError("a view that can be written is not built")
    target = base + PROJECT
    mount(f"/proc/self/fd/{root}", target, None, MS_BIND | MS_REC)
    os.close(root)
    for name in view["hidden"]:
        cover(base, f"{PROJECT}/{name}")
    restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
