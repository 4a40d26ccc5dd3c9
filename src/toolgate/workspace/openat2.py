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


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall.argtypes = [
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_How),
        ctypes.c_size_t,
    ]
    return libc


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
    resolve = _BENEATH | _NO_MAGICLINKS | (0 if follow else _NO_SYMLINKS)
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    name = os.fsencode(path)
    if b"\0" in name:  # C would stop reading there and open something else
        raise ValueError("embedded null byte")
    code = 0
    for _ in range(_ATTEMPTS):
        handle = int(
            _libc().syscall(SYS_OPENAT2, root, name, ctypes.byref(how), ctypes.sizeof(how)),
        )
        if handle >= 0:
            return handle
        code = ctypes.get_errno()
        # EAGAIN: something was renamed while `..` of a link was resolved, and the kernel could not be sure.
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)
