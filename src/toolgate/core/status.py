"""File status without letting go of Python's lock.

`os.stat` lets other threads run while it asks the kernel, which takes a microsecond; to get the lock back takes a hundred
where a thread of another call has it. The gate looks at its own files (policy, tokens, accounts) several times in every call,
on the event loop, where a file system that does not answer holds everybody up either way. So here the kernel is asked with
the lock held, where the C library has `statx`, whose answer has one layout everywhere; elsewhere by `os.stat`.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any

from toolgate.core.named_tuples import NamedTuple

_AT_FDCWD, _BASIC, _BYTES = -100, 0x7FF, 256
_unpack = struct.Struct("=32xQQ48xqI4xqI4x8xII").unpack_from
"""Of `struct statx`: inode, size, times of the last change of its status and of its content, device."""


class FileStatus(NamedTuple):
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    device: tuple[int, int]


class FileLook:
    """What stands at a path whenever it is asked for, behind links. Raises OSError as `os.stat` does."""

    def __init__(self, path: Path) -> None:
        self._name = os.fsencode(path)

    def __call__(self) -> FileStatus:
        global _known
        if _known is None:
            _known = _statx()
        ask, room = _known
        if ask is None or b"\0" in self._name:
            return self._by_stat()
        answer = room()
        if ask(_AT_FDCWD, self._name, 0, _BASIC, answer) != 0:
            return self._by_stat()  # which says why
        inode, size, csec, cnano, sec, nano, major, minor = _unpack(answer)
        return FileStatus(sec * 10**9 + nano, csec * 10**9 + cnano, size, inode, (major, minor))

    def _by_stat(self) -> FileStatus:
        found = os.stat(self._name)
        device = os.major(found.st_dev), os.minor(found.st_dev)
        return FileStatus(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, device)


_known: tuple[Any, Any] | None = None
"""The function and the room for its answer, when they were first needed."""


def _statx() -> tuple[Any, Any]:
    if sys.platform != "linux":
        return None, None
    import ctypes

    try:
        found = ctypes.PyDLL(None).statx
    except (OSError, AttributeError):
        return None, None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    return found, ctypes.c_char * _BYTES
