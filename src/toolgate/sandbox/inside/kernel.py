"""The system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from .arch import here

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
_AT_RECURSIVE, _AT_FDCWD, _MNT_DETACH = 0x8000, -100, 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4

_libc = ctypes.CDLL(None, use_errno=True)
_calls = here().calls


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(name: str, *args: Any) -> int:
    """Integers are passed as longs, everything else as it is."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    return _checked(_libc.syscall(ctypes.c_long(_calls[name]), *given), name)


def prctl(option: int, *args: int) -> int:
    padded = [ctypes.c_ulong(each) for each in (*args, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(option, *padded), f"prctl {option}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare {flags:#x}")


def setns(handle: int, kind: int) -> None:
    _checked(_libc.setns(ctypes.c_int(handle), ctypes.c_int(kind)), f"setns {kind:#x}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() if kind else None, ctypes.c_ulong(flags),
        data.encode() if data else None,
    )  # fmt: skip
    _checked(result, f"mount {target}")


def unmount(target: str) -> None:
    _checked(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    syscall("pivot_root", ctypes.c_char_p(os.fsencode(new)), ctypes.c_char_p(os.fsencode(old)))


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def restrict_mount(target: str, attributes: int, below: bool = True) -> None:
    """Set attributes such as read-only on a mount and, unless told otherwise, on those below it."""
    attr = _MountAttr(attributes, 0, 0, 0)
    path = ctypes.c_char_p(os.fsencode(target))
    flags = _AT_RECURSIVE if below else 0
    syscall("mount_setattr", _AT_FDCWD, path, flags, ctypes.byref(attr), ctypes.sizeof(attr))


def close_from(first: int) -> None:
    syscall("close_range", first, 0x7FFFFFFF, 0)


def close_on_exec_from(first: int) -> None:
    syscall("close_range", first, 0x7FFFFFFF, 4)
