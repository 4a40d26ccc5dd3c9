"""A file system of its own: a root in memory that holds only what the program may see, all of it read-only.

Sources are opened before anything is covered, and mounted by their handles.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from . import view
from .kernel import (
    ATTR_NODEV,
    ATTR_NOSUID,
    ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    mount,
    pivot_root,
    restrict_mount,
    unmount,
)
from .order import INSIDE_UID, PACKAGES, PROJECT, SCRAP, WORK, Order, placed

_BASE = "/tmp"  # noqa: S108  Any directory would do: it is covered in this process's own namespace only.
_TEMPORARY = "tmp"
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = ("null", "zero", "full", "random", "urandom")
_FIXED = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV
_READ_ONLY = 1


def build(order: Order, uid: int) -> tuple[int, tuple[str, int]]:
    """Build it and move in. Gives a handle of the work directory, for the host to collect from, and how the project
    is shown with a handle of its changes."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    binds = [(_source(path), placed(path)) for path in sorted({*order.read, *order.execute})]
    binds += [(_source(path), f"{PACKAGES}/{os.path.basename(path)}") for path in order.packages]
    devices = [(_source(f"/dev/{name}"), f"/dev/{name}") for name in DEVICES]
    project = view.open_root(order.view) if order.view else None
    place = _source(order.place) if order.place else None

    mount("tmpfs", _BASE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    _furnish(uid)
    for handle, target in binds:
        _bind(handle, target, _FIXED)
    for handle, target in devices:
        _bind(handle, target, 0)
    for path in order.hide:
        view.cover(_BASE, placed(path))
    shown = ("", -1)
    if project is not None:
        assert order.view is not None
        shown = view.show(_BASE, project, order.view, None if uid == INSIDE_UID else uid)
    work = _make_work(order, uid, place)
    _mount_proc()
    os.chdir(_BASE)
    pivot_root(".", ".")
    unmount(".")
    os.chdir("/")
    restrict_mount("/", ATTR_RDONLY | ATTR_NOSUID, below=False)
    return work, shown


def _source(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _furnish(uid: int) -> None:
    for name in ("proc", "dev", "etc", WORK[1:], PROJECT[1:], PACKAGES[1:]):
        os.mkdir(f"{_BASE}/{name}", 0o755)
    view.make_covers(_BASE)
    for name in _LINKS:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{_BASE}/{name}")
    os.symlink(f"{WORK}/{SCRAP}", f"{_BASE}/{_TEMPORARY}")
    for name, text in _identity(uid):
        with open(f"{_BASE}/etc/{name}", "w") as stream:
            stream.write(text)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{_BASE}/dev/{name}")


def _identity(uid: int) -> Iterator[tuple[str, str]]:
    """Programs ask who they are and what localhost is."""
    yield "passwd", f"program:x:{uid}:{uid}::{WORK}:/bin/sh\n"
    yield "group", f"program:x:{uid}:\n"
    yield "hosts", "127.0.0.1 localhost\n"


def _bind(handle: int, target: str, attributes: int) -> None:
    directory = stat.S_ISDIR(os.fstat(handle).st_mode)
    place = _BASE + target
    if directory:
        os.makedirs(place, exist_ok=True)
    elif not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    mount(f"/proc/self/fd/{handle}", place, None, MS_BIND | (MS_REC if directory else 0))
    if attributes:
        restrict_mount(place, attributes)
    os.close(handle)


def _make_work(order: Order, uid: int, place: int | None) -> int:
    target = _BASE + WORK
    if place is not None:
        mount(f"/proc/self/fd/{place}", target, None, MS_BIND)
        restrict_mount(target, ATTR_NOSUID | ATTR_NODEV)
        os.close(place)
    else:
        # Its own root and the directory for temporary files are not counted.
        limits = f"size={order.disk},nr_inodes={order.inodes + 2},mode=700"
        owner = "" if uid == INSIDE_UID else f",uid={uid},gid={uid}"
        mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, limits + owner)
        os.mkdir(f"{target}/{SCRAP}", 0o700)
        os.chown(f"{target}/{SCRAP}", *((-1, -1) if uid == INSIDE_UID else (uid, uid)))
    return os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _mount_proc() -> None:
    """Only processes, and only its own. Some containers forbid it; most programs do without."""
    try:
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | _READ_ONLY
        mount("proc", f"{_BASE}/proc", "proc", flags, "subset=pid")
    except OSError:
        return
