"""The one way to open something in a mount: beneath its root handle, whatever the path or the disk says.

The kernel resolves the path (`openat2`, by ctypes) and refuses to leave the directory it starts from. Where it lacks that,
the path is walked: each name is opened relative to the handle before it; a link is read as text and its target walked
the same way; `..` goes back to the handle we came through. So whatever is swapped meanwhile, no step leaves the root.
Both raise OSError with the same numbers: EXDEV where the path leads out, ELOOP at a link that may not be followed.

A caller gets a handle or a CallError; a path that leads out gets the same words whether or not anything is there.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from toolgate.core.errors import BlockedPath, CallError, NotFound, OutsideMount, Unavailable
from toolgate.core.records import dataclass

SYS_OPENAT2 = 437  # the same number on every architecture below
_ARCHITECTURES = ("x86_64", "aarch64", "riscv64")
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_ATTEMPTS = 64


class _How(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


Argument = Any
"""Converted once: ctypes would convert it at every call, which takes longer than the kernel does."""
_NUMBER, _SIZE = ctypes.c_long(SYS_OPENAT2), ctypes.c_size_t(ctypes.sizeof(_How))


@functools.cache
def _syscall() -> Callable[..., int]:
    """Without `argtypes`, on purpose: what is passed is a C value already, or bytes, or a small positive int."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


@functools.cache
def _how(flags: int, follow: bool) -> Argument:
    """The kernel only reads it, so that all callers and threads share one."""
    resolve = _BENEATH | _NO_MAGICLINKS | (0 if follow else _NO_SYMLINKS)
    return ctypes.byref(_How(flags | os.O_CLOEXEC, 0, resolve))


@functools.cache
def available() -> bool:
    """Asked once, on a path that always exists: old kernels say ENOSYS, some container profiles EPERM."""
    if sys.platform != "linux" or os.uname().machine not in _ARCHITECTURES:
        return False
    with held(os.open("/", STEP)) as root, suppress(OSError):
        os.close(open_by_kernel(root, ".", os.O_RDONLY | os.O_DIRECTORY, True))
        return True
    return False


def open_by_kernel(root: int, path: str, flags: int, follow: bool) -> int:
    name = os.fsencode(path)
    if b"\0" in name:  # C would stop reading there and open something else
        raise ValueError("embedded null byte")
    handle = _syscall()(_NUMBER, root, name, _how(flags, follow), _SIZE)
    return handle if handle >= 0 else _again(root, name, flags, follow)


def _again(root: int, name: bytes, flags: int, follow: bool) -> int:
    """EAGAIN: something was renamed while `..` of a link was resolved, and the kernel could not be sure."""
    for _ in range(_ATTEMPTS):
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
        handle = _syscall()(_NUMBER, root, name, _how(flags, follow), _SIZE)
        if handle >= 0:
            return handle
    raise OSError(code, os.strerror(code), os.fsdecode(name))


Visit = Callable[[list[str]], None]
"""Told every name from the root on, links resolved, before it is opened; raises to stop."""

STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is opened by one name: the directory itself, no link in its place."""
_MAX_LINKS = 40  # as the kernel counts


def open_by_walking(root: int, path: str, flags: int, follow: bool, visit: Visit | None = None) -> int:
    todo = _parts(path)
    trail = [os.dup(root)]
    names: list[str] = []
    links = 0
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                _step_back(trail, path)
                names.pop()
                continue
            if visit is not None:
                visit([*names, name])
            try:
                handle = os.open(name, STEP if todo else flags | os.O_NOFOLLOW, dir_fd=trail[-1])
            except OSError as error:
                target = _link_target(name, trail[-1], error)
                links += 1
                if not follow or links > _MAX_LINKS:
                    raise _refused(errno.ELOOP, path) from None
                todo.extend(_parts(target))
                continue
            if not todo:
                return handle
            trail.append(handle)
            names.append(name)
        if visit is not None:
            visit(names)
        return os.open(".", flags, dir_fd=trail[-1])
    finally:
        for handle in trail:
            os.close(handle)


def _parts(path: str) -> list[str]:
    """The components, last first. An absolute path, also as a link's target, starts outside by definition."""
    if path.startswith("/"):
        raise _refused(errno.EXDEV, path)
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _step_back(trail: list[int], path: str) -> None:
    if len(trail) == 1:
        raise _refused(errno.EXDEV, path)
    os.close(trail.pop())


def _link_target(name: str, parent: int, error: OSError) -> str:
    """Where the link leads that made an open fail; the same error again if it was no link."""
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise error
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        raise error from None


def _refused(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


Opener = Callable[[int, str, int, bool], int]
"""Root handle, relative path, flags, whether links inside may be followed → handle, or OSError."""

# Without O_NONBLOCK, opening a FIFO would wait for its writer before we could see what it is.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_SPECIAL = (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class Root:
    """A directory handle, and how to open what is beneath it."""

    handle: int
    opener: Opener


def best_opener() -> Opener:
    return open_by_kernel if available() else open_by_walking


@contextmanager
def held(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(root: Root, relative: str, shown: str, *, follow: bool = True) -> int:
    """A handle for reading a regular file. `follow` allows symbolic links that stay inside."""
    return open_with_status(root, relative, shown, follow=follow)[0]


def open_with_status(
    root: Root, relative: str, shown: str, *, follow: bool = True
) -> tuple[int, os.stat_result]:
    """The same for those who would ask for its status next."""
    handle = _open(root, relative, shown, _FILE, follow)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        return handle, status
    os.close(handle)
    raise _not_a_file(shown, "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")


def open_directory(root: Root, relative: str, shown: str, *, follow: bool = True) -> int:
    return _open(root, relative, shown, _DIRECTORY, follow)


def open_parent(root: Root, relative: str, shown: str, *, create: bool = False) -> tuple[int, str]:
    """The directory that holds a file about to be written, and the file's name in it.

    No link is followed on the way: the path a human approved is the path that is written.
    """
    parent, _, name = relative.rpartition("/")
    if name in ("", ".", ".."):
        raise _not_a_file(shown, "the mount itself" if name == "." else "not a file name")
    try:
        return open_directory(root, parent or ".", shown, follow=False), name
    except NotFound:
        if not create:
            raise
    return _make_directories(root, parent, shown), name


def _make_directories(root: Root, relative: str, shown: str) -> int:
    here = os.dup(root.handle)
    for part in relative.split("/"):
        with held(here):
            below = _enter(Root(here, root.opener), part, shown)
        here = below
    return here


def _enter(root: Root, part: str, shown: str) -> int:
    with suppress(NotFound):
        return open_directory(root, part, shown, follow=False)
    try:
        os.mkdir(part, dir_fd=root.handle)
        os.fsync(root.handle)
    except FileExistsError:
        pass  # made by somebody else just now, or no directory: opening it again tells
    except OSError as error:
        raise _refusal(error, shown, follow=False) from None
    try:
        return open_directory(root, part, shown, follow=False)
    except NotFound:
        raise BlockedPath(
            f"{shown!r}: {part!r} on the way to it is not a directory", "choose another path"
        ) from None


def _open(root: Root, relative: str, shown: str, flags: int, follow: bool) -> int:
    try:
        return root.opener(root.handle, relative, flags, follow)
    except OSError as error:
        raise _refusal(error, shown, follow) from None
    except ValueError:  # a null byte, or characters that no file name can hold
        raise OutsideMount(f"{shown!r} cannot be a path", "write it in plain characters") from None


def _refusal(error: OSError, shown: str, follow: bool) -> CallError:
    code = error.errno
    if code == errno.EXDEV or (code == errno.ELOOP and follow):
        return OutsideMount(f"{shown!r} leads out of its mount", "use a path inside the mount")
    if code == errno.ELOOP:
        return BlockedPath(
            f"{shown!r} is or passes through a symbolic link, which is never written through",
            "name the file itself",
        )
    if code in _ABSENT:
        return NotFound(f"there is no {shown!r}", "check the path; `fs.find` finds files by name")
    if code in _SPECIAL:
        return _not_a_file(shown, "not a regular file")
    if code == errno.ENAMETOOLONG:
        return BlockedPath(f"{shown[:80]!r} is too long for this file system", "shorten it")
    return Unavailable(f"{shown!r} cannot be opened: {os.strerror(code or 0)}", "check its permissions")


def _not_a_file(shown: str, kind: str) -> BlockedPath:
    more = "; `fs.list` lists a directory" if kind == "a directory" else ""
    return BlockedPath(f"{shown!r} is {kind}", f"name a regular file{more}")
