"""`inotify` by ctypes: told by the kernel itself that something happened in a directory.

The kernel queues an event before the change that caused it returns. So whoever asks the queue after a change finds
it there; no thread has to be woken first, as with libraries that collect events in the background.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
# modify, attrib, close-write, moved from and to, create, delete, delete self, move self; only directories
_MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x01000000
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010, 0xCA451A4E})
"""ext, xfs, btrfs, tmpfs, zfs, f2fs, bcachefs: nobody changes these but through this kernel."""


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    libc.fstatfs.argtypes = [ctypes.c_int, ctypes.c_char_p]
    return libc


def available() -> bool:
    return sys.platform == "linux" and ctypes.sizeof(ctypes.c_long) == 8 and os.path.isdir("/proc/self/fd")


def begin() -> int | None:
    """A queue; None where the user has no more of them."""
    handle = int(_libc().inotify_init1(_NONBLOCK_CLOEXEC))
    return handle if handle >= 0 else None


def add(queue: int, directory: int) -> bool:
    """Watch an open directory, whatever its name is by now. False where the user has no more watches."""
    return int(_libc().inotify_add_watch(queue, b"/proc/self/fd/%d" % directory, _MASK)) >= 0


def local(directory: int) -> bool:
    """Whether all changes pass this kernel: those of other machines on a network file system do not."""
    status = ctypes.create_string_buffer(256)
    if _libc().fstatfs(directory, status) != 0:
        return False
    return int.from_bytes(status.raw[:8], sys.byteorder) in _LOCAL
