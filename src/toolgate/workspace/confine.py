"""The one way to open something in a mount: beneath its root handle, whatever the path or the disk says.

Above: everything that touches files. Below: `openat2`, or `walk` where the kernel lacks it. A caller gets a handle
or a CallError; a path that leads out gets the same words whether or not anything is there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolgate.core.errors import BlockedPath, CallError, NotFound, OutsideMount, Unavailable
from toolgate.workspace import openat2
from toolgate.workspace.walk import open_by_walking

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
    return openat2.open_by_kernel if openat2.available() else open_by_walking


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
        try:
            below = _enter(Root(here, root.opener), part, shown)
        finally:
            os.close(here)
        here = below
    return here


def _enter(root: Root, part: str, shown: str) -> int:
    try:
        return open_directory(root, part, shown, follow=False)
    except NotFound:
        pass
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
