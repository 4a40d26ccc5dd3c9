"""`openat2` by ctypes: the kernel itself resolves a path and refuses to leave the directory it starts from.

Raises OSError only, like os.open: EXDEV where the path leads out, ELOOP at a link that may not be followed.
`confine` turns these into words.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

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
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return False
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_by_kernel(root, ".", os.O_RDONLY | os.O_DIRECTORY, True))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


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
