"""Giving up what a process could do: its user, its capabilities, outliving the zygote."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

from .kernel import (
    CLONE_NEWUSER,
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    prctl,
    syscall,
    unshare,
)
from .order import INSIDE_UID

_CAPABILITIES = 64
_CAPABILITY_VERSION = 0x20080522


def die_with_parent() -> None:
    """A change of user takes this back: it is said again after one."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    die_with_parent()


def enter_user_namespace(uid: int, gid: int, own: int) -> None:
    """A new one, in which this user is INSIDE_UID; `own` is a handle of /proc/self."""
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_UID} {uid} 1"),
        ("gid_map", f"{INSIDE_UID} {gid} 1"),
    ):
        handle = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=own)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)


def gain_nothing() -> None:
    """Whatever it runs can have no more rights than it has."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for each in range(_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, each)
        except (
            OSError
        ):  # the first number that this kernel does not have, or no right to drop what is not there
            break
    header = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_VERSION, 0), 8)
    syscall("capset", ctypes.byref(header), ctypes.byref(ctypes.create_string_buffer(24)))
