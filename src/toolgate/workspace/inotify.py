"""`inotify` by ctypes: told by the kernel itself that something happened in a directory.

The kernel queues an event before the change that caused it returns. So whoever asks the queue after a change finds
it there; no thread has to be woken first, as with libraries that collect events in the background.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Iterator

from toolgate.core.named_tuples import NamedTuple

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_MOVED_TO, _CREATED, _ONLY_DIRECTORIES = 0x80, 0x100, 0x01000000
NEW_NAMES = _MOVED_TO | _CREATED | _ONLY_DIRECTORIES
EVERYTHING = NEW_NAMES | 0x2 | 0x4 | 0x8 | 0x40 | 0x200 | 0x400 | 0x800
"""Also: modify, attrib, close-write, moved from, delete, delete self, move self."""
_DIRECTORY = 0x40000000
_HEADER = struct.Struct("iIII")
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0xCA451A4E})
"""ext, xfs, btrfs, tmpfs, f2fs, bcachefs: nobody changes these but through this kernel, name by name. ZFS can be rolled
back under its users."""


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


def add(queue: int, directory: int, mask: int = EVERYTHING) -> int | None:
    """Watch an open directory, whatever its name is by now: the number of the watch, or None where the user has no
    more of them."""
    number = int(_libc().inotify_add_watch(queue, b"/proc/self/fd/%d" % directory, mask))
    return number if number >= 0 else None


class WatchEvent(NamedTuple):
    watch: int
    name: str
    """What came into the watched directory; empty where it is about something else, or about too much."""
    directory: bool


def events(said: bytes) -> Iterator[WatchEvent]:
    """What was read from a queue; the kernel gives whole events only."""
    at = 0
    while at < len(said):
        watch, mask, _, length = _HEADER.unpack_from(said, at)
        at += _HEADER.size + length
        name = said[at - length : at].rstrip(b"\0") if mask & NEW_NAMES else b""
        yield WatchEvent(watch, os.fsdecode(name), bool(mask & _DIRECTORY))


def most_watches() -> int:
    """How many a user may have, all programs together."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as limit:
            return int(limit.read())
    except (OSError, ValueError):
        return 0


def local(directory: int) -> bool:
    """Whether all changes pass this kernel: those of other machines on a network file system do not."""
    status = ctypes.create_string_buffer(256)
    if _libc().fstatfs(directory, status) != 0:
        return False
    return int.from_bytes(status.raw[:8], sys.byteorder) in _LOCAL
