"""Privileges and limits of a process: its user, its capabilities and outliving the zygote are given up; the kernel's limits
are set when the program is known and before it runs."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct

from .kernel import (
    CLONE_NEWUSER,
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    held,
    prctl,
    syscall,
    unshare,
)
from .order import INSIDE_UID, Go, Kind

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
        with held(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=own)) as handle:
            os.write(handle, text.encode())


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


THREADS = 64
"""For a program that may start no process: threads count as processes."""
_CODE_RANGE = 640 << 20
"""What V8 sets aside for code before it runs any: counted, though hardly any of it is ever used."""
_RESERVED = 1536 << 20
"""What programs that a shell starts may map beyond the private data they may have: npm needs 1.3 GB in all."""
_ARENA_MAX = -8
_SIGNALS = 1024
"""Queued signals and timers: the kernel keeps them, and counts them for the user."""
_SPARE = 256
"""Where programs run as the user: threads that he may start elsewhere before a program can start none."""


def apply(go: Go, kind: Kind, *, size: int, others: int) -> None:
    """`size` is what the interpreter itself maps; `others` are the user's processes that are not ours."""
    if kind != "python":  # what starts Node, as `npm test` does, maps far more than it uses
        _lower(resource.RLIMIT_DATA, go.memory + (_CODE_RANGE if kind == "javascript" else 0))
    if kind != "javascript":
        _lower(resource.RLIMIT_AS, go.memory + (size if kind == "python" else _RESERVED))
    started = 1 if kind == "shell" else 0  # the first process only waits for the others
    processes = THREADS if go.processes == 1 else go.processes + started
    _lower(resource.RLIMIT_NPROC, processes + (others + _SPARE if others else 0))
    _lower(resource.RLIMIT_CPU, go.cpu)
    _lower(resource.RLIMIT_NOFILE, go.files)
    _lower(resource.RLIMIT_FSIZE, go.disk)
    _lower(resource.RLIMIT_SIGPENDING, _SIGNALS)
    for each in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _lower(each, 0)
    for each in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):
        _lower(each, 0)


def share_one_heap() -> None:
    """For all threads: the C library would set addresses aside for each, and the limit on memory counts those."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_ARENA_MAX, 1)


def address_space() -> int:
    """How much this process maps."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[0]) * resource.getpagesize()


def tasks_of(uid: int) -> int:
    """Processes and threads of a user, as the kernel counts them for its limit."""
    count = 0
    with os.scandir("/proc") as entries:
        for entry in entries:
            try:
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    count += os.stat(f"/proc/{entry.name}/task").st_nlink - 2
            except OSError:
                continue
    return count


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (limit, limit))
