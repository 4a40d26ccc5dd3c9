"""The project as a program sees it: without the hidden names, read-only or as a copy on write.

Where the kernel has them, it is made of layers: the real files at the bottom, nothing where a hidden name is, the
program's writes on top. A hidden name is a whiteout in a layer between: for the program it does not exist, wherever it
comes from. The layers are out of its reach, so it can neither forge a mark in them nor look under them. Links and renames
cannot lead around this: names are looked up in the layers together, and nothing follows a redirection.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import struct
from collections.abc import Iterable
from typing import Any

from .kernel import (
    ATTR_NODEV,
    ATTR_NOEXEC,
    ATTR_NOSUID,
    ATTR_RDONLY,
    CLONE_NEWUSER,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    held,
    mount,
    restrict_mount,
    syscall,
    unmount,
    unshare,
)
from .order import PROJECT

# The project as a copy, where the kernel has no layers for us. Only what the program may see is copied, up
# to a limit.

MAX_BYTES = 64 << 20
MAX_NAMES = 10_000
MAX_DEPTH = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyTooLarge(OSError):
    """More than is copied for a program."""


class Copy:
    def __init__(self, hidden: list[str], owner: int | None) -> None:
        self._hidden, self._owner = frozenset(hidden), owner
        self._bytes, self._names = MAX_BYTES, MAX_NAMES

    def directory(self, origin: int, goal: int, below: str = "", depth: int = 0) -> None:
        """What is in the one into the other; both are handles."""
        for name in os.listdir(origin):
            path = below + name
            if path in self._hidden:
                continue
            self._names -= 1
            kind = os.stat(name, dir_fd=origin, follow_symlinks=False).st_mode
            if self._names < 0 or depth > MAX_DEPTH:
                raise CopyTooLarge(f"the project has more than {MAX_NAMES:,} files, or lies too deep")
            if stat.S_ISDIR(kind):
                self._below(origin, goal, name, path, depth)
            elif stat.S_ISREG(kind):
                self._file(origin, goal, name)
            elif stat.S_ISLNK(kind):
                os.symlink(os.readlink(name, dir_fd=origin), name, dir_fd=goal)

    def _below(self, origin: int, goal: int, name: str, path: str, depth: int) -> None:
        os.mkdir(name, 0o755, dir_fd=goal)
        with (
            held(os.open(name, _DIRECTORY, dir_fd=origin)) as source,
            held(os.open(name, _DIRECTORY, dir_fd=goal)) as target,
        ):
            self.directory(source, target, path + "/", depth + 1)
            self._give(target)

    def _file(self, origin: int, goal: int, name: str) -> None:
        source = os.open(name, _READ, dir_fd=origin)
        with os.fdopen(source, "rb") as reading:
            content = reading.read(self._bytes + 1)
            mode = stat.S_IMODE(os.fstat(source).st_mode) & 0o777
        self._bytes -= len(content)
        if self._bytes < 0:
            raise CopyTooLarge(f"the project has more than {MAX_BYTES >> 20} MiB")
        with os.fdopen(os.open(name, _WRITE, 0o600, dir_fd=goal), "wb") as writing:
            writing.write(content)
            os.fchmod(writing.fileno(), mode)
            self._give(writing.fileno())

    def _give(self, handle: int) -> None:
        if self._owner is not None:
            os.fchown(handle, self._owner, self._owner)


_CLONE, _EMPTY_PATH, _FROM_EMPTY, _CLOEXEC = 1, 0x1000, 4, os.O_CLOEXEC
_ATTR_IDMAP = 0x00100000
_FDCWD = -100
_LAST_ID = 2**32 - 2


def mount_layers(
    stage: str, target: str, root: int, view: dict[str, Any], owner: int | None, trusted: bool
) -> int:
    """Mount them at `target`, with `stage` as an empty directory to work in. `owner` is the job's user, where it is not
    the one that owns the project already; `trusted` marks are the ones that only root can make. Gives a handle of the
    layer that writes go to, or -1 where they may not."""
    room = len(view["hidden"]) * 8192 + (1 << 20)
    mount("tmpfs", stage, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=700,size={room}")
    for name in ("low", "mask", "top"):
        os.mkdir(f"{stage}/{name}", 0o755)
    _bottom(f"{stage}/low", root, owner)
    _mask(f"{stage}/mask", root, view["hidden"], owner)
    # In a user namespace the marks are ordinary attributes, and nothing is ever redirected.
    options = "redirect_dir=nofollow,metacopy=off" if trusted else "userxattr"
    options += f",index=off,xino=off,lowerdir={stage}/mask:{stage}/low"
    top = -1
    if view["writable"]:
        limits = f"size={view['disk']},nr_inodes={view['inodes'] + 4}"
        mount("tmpfs", f"{stage}/top", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=700,{limits}")
        for name in ("upper", "work"):
            os.mkdir(f"{stage}/top/{name}", 0o700)
        _resemble(f"{stage}/top/upper", os.fstat(root), owner)
        top = os.open(f"{stage}/top/upper", _DIRECTORY)
        options += f",upperdir={stage}/top/upper,workdir={stage}/top/work"
    mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options)
    unmount(stage)  # nothing of it can be reached but through what was mounted
    return top


def _bottom(target: str, root: int, owner: int | None) -> None:
    """The project's own directory; with an owner, so that whose files they are, they seem to be the job's."""
    tree = syscall("open_tree", root, ctypes.c_char_p(b""), _CLONE | _EMPTY_PATH | _CLOEXEC)
    if owner is not None:
        status = os.fstat(root)
        namespace = _user_namespace(_swapped(status.st_uid, owner), _swapped(status.st_gid, owner))
        attr = struct.pack("<QQQQ", _ATTR_IDMAP, 0, 0, namespace)
        syscall("mount_setattr", tree, ctypes.c_char_p(b""), _EMPTY_PATH, ctypes.c_char_p(attr), len(attr))
        os.close(namespace)
    to = ctypes.c_char_p(os.fsencode(target))
    syscall("move_mount", tree, ctypes.c_char_p(b""), _FDCWD, to, _FROM_EMPTY)
    os.close(tree)


def _mask(base: str, root: int, hidden: Iterable[str], owner: int | None) -> None:
    made = {""}
    _resemble(base, os.fstat(root), owner)
    for name in hidden:
        if not _there(root, os.path.dirname(name)):
            continue  # what it was in has gone: there is nothing to hide
        above = ""
        for part in name.split("/")[:-1]:
            above = f"{above}/{part}" if above else part
            if above not in made:
                made.add(above)
                os.mkdir(f"{base}/{above}", 0o700)
                _resemble(f"{base}/{above}", os.stat(above, dir_fd=root, follow_symlinks=False), owner)
        os.mknod(f"{base}/{name}", stat.S_IFCHR, 0)


def _there(root: int, directory: str) -> bool:
    try:
        return not directory or stat.S_ISDIR(os.stat(directory, dir_fd=root, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _resemble(path: str, status: os.stat_result, owner: int | None) -> None:
    """A directory looks like the topmost layer that has it."""
    os.chmod(path, stat.S_IMODE(status.st_mode) & 0o777)
    if owner is not None:
        os.chown(path, owner, owner)


def _swapped(theirs: int, ours: int) -> str:
    """Every number stands for itself, but these two for each other."""
    if theirs == ours:
        return f"0 0 {_LAST_ID + 1}\n"
    low, high = sorted((theirs, ours))
    spans = [(0, 0, low), (low, high, 1), (low + 1, low + 1, high - low - 1), (high, low, 1)]
    spans.append((high + 1, high + 1, _LAST_ID - high))
    return "".join(f"{inside} {outside} {count}\n" for inside, outside, count in spans if count)


def _user_namespace(users: str, groups: str) -> int:
    """A handle of a user namespace in which nobody lives, for the sake of its numbers."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            unshare(CLONE_NEWUSER)
            # itself, by a handle: another process may have its number in the namespace that /proc is of
            own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            socket.send_fds(theirs, [b"."], [own])
            theirs.recv(1)
        finally:
            os._exit(0)
    theirs.close()
    try:
        _, handles, _, _ = socket.recv_fds(ours, 1, 1)
        if not handles:
            raise OSError("no user namespace could be made")
        return _numbered(handles[0], users, groups)
    finally:
        ours.close()
        os.waitpid(child, 0)


def _numbered(own: int, users: str, groups: str) -> int:
    with held(own):
        for name, text in (("uid_map", users), ("gid_map", groups)):
            with held(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=own)) as handle:
                os.write(handle, text.encode())
        return os.open("ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=own)


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
        shown = _shown(stage, base + PROJECT, root, view, owner)
        for name in _whole(view):
            _show_whole(base + PROJECT, root, name, owner)
        for name in view["environment"]["shut"] if view["environment"] else ():
            cover(base, f"{PROJECT}/{name}")
        return shown
    finally:
        os.close(root)
        os.rmdir(stage)


def _shown(stage: str, target: str, root: int, view: dict[str, Any], owner: int | None) -> tuple[str, int]:
    try:
        return "layers", mount_layers(stage, target, root, view, owner, os.getuid() == 0)
    except OSError:  # no overlayfs here, or not on these files
        if os.path.ismount(stage):
            unmount(stage)
        return "copy", _copied(target, root, view, owner)


def _whole(view: dict[str, Any]) -> list[str]:
    """Directories that lie over the view as they are, relative to the project."""
    found = view["environment"] or {}
    return [found[key] for key in ("python", "node") if found.get(key)]


def _show_whole(project: str, root: int, name: str, owner: int | None) -> None:
    """One directory with all that is in it, read-only; nothing where it has become a link or is gone."""
    handle = os.dup(root)
    try:
        for part in name.split("/"):
            inner = os.open(part, _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
    except OSError:
        os.close(handle)
        return
    target = f"{project}/{name}"
    with held(handle):
        try:
            _bottom(target, handle, owner)
        except OSError:  # a file system that cannot give its files other owners
            _bottom(target, handle, None)
    restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)


def _copied(target: str, root: int, view: dict[str, Any], owner: int | None) -> int:
    limits = f"size={MAX_BYTES + view['disk']},nr_inodes={MAX_NAMES + view['inodes']},mode=755"
    whose = "" if owner is None else f",uid={owner},gid={owner}"
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, limits + whose)
    handle = copy_to(target, root, view, owner)
    for name in _whole(view):
        os.makedirs(f"{target}/{name}", exist_ok=True)
    if not view["writable"]:
        restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    return handle


def copy_to(target: str, root: int, view: dict[str, Any], owner: int | None) -> int:
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    Copy([*view["hidden"], *_whole(view)], owner).directory(root, handle)
    return handle
