"""Landlock: the files a process may touch, whatever its user may; TCP ports; signals and abstract sockets."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from .kernel import held, syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 10, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_HANDLED = (0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)
"""By the kernel's version of Landlock."""
_FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
READ = READ_FILE | READ_DIR
OWN = _HANDLED[-1] & ~(EXECUTE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK | _IOCTL_DEV)
"""In a directory of its own: everything but running what is there and making what is no file."""

NEEDED_ALONE = 3
"""The version that also covers truncation: without it Landlock cannot be the only wall around the files."""

Rule = tuple[str, int]


def version() -> int:
    try:
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict(rules: Iterable[Rule], port: int = 0, any_port: bool = False) -> None:
    """From here on only what the rules name; connections only to that port, or to none, or to any."""
    abi = version()
    handled = _HANDLED[min(abi, len(_HANDLED) - 1)]
    attr = struct.pack("<Q", handled)
    attr += struct.pack("<Q", 0 if any_port else 3) if abi >= 4 else b""
    attr += struct.pack("<Q", 3) if abi >= 6 else b""
    ruleset = syscall("landlock_create_ruleset", _buffer(attr), len(attr), 0)
    for path, access in rules:
        _allow_path(ruleset, path, access & handled)
    if port and abi >= 4:
        syscall("landlock_add_rule", ruleset, 2, _buffer(struct.pack("<QQ", 2, port)), 0)
    syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)


def _allow_path(ruleset: int, path: str, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # one rule fewer allows less, never more
    with held(handle):
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= _FOR_FILES
        if access:
            syscall("landlock_add_rule", ruleset, 1, _buffer(struct.pack("<Qi", access, handle)), 0)


def _buffer(data: bytes) -> ctypes.c_void_p:
    return ctypes.cast(ctypes.create_string_buffer(data, len(data)), ctypes.c_void_p)
