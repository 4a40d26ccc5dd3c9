"""Seccomp: which system calls a program may make. What is not named is refused.

A refused call fails with an errno, so that libraries that try something and fall back keep working. Two failures mean
something: starting a process fails as it does at a limit (EAGAIN), and numbers newer than our table do not exist
(ENOSYS). A call made for another architecture ends the process.

The filter is assembled here: a program is a list of instructions, and of lists that are tried one after the other. A
`rule` looks at one system call and falls through to the next one if it is about another. Jumps are relative and short by
construction.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .kernel import AARCH64, PR_SET_SECCOMP, X86_64, Arch, here, syscall

Instruction = tuple[int, int, int, int]
"""Operation, how many to skip if true, how many to skip if false, operand."""

_LOAD, _RETURN, _AND = 0x20, 0x06, 0x54
_EQUAL, _GREATER, _AT_LEAST, _ANY_BIT = 0x15, 0x25, 0x35, 0x45
NUMBER, ARCH = 0, 4
"""Offsets in what the filter is shown: the call's number and the architecture it was made for."""

ALLOW, KILL = 0x7FFF0000, 0x80000000
LONGEST_FILTER = 4096


def fail(errno: int) -> int:
    return 0x00050000 | errno


def load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def argument(index: int) -> Instruction:
    """The low half: enough for flags, families and numbers of processes, all of which the kernel takes as ints."""
    return load(16 + 8 * index)


def give(verdict: int) -> Instruction:
    return (_RETURN, 0, 0, verdict)


def mask(bits: int) -> Instruction:
    return (_AND, 0, 0, bits)


def unless_equal(value: int, skip: int) -> Instruction:
    return (_EQUAL, 0, skip, value)


def if_equal(value: int, skip: int) -> Instruction:
    return (_EQUAL, skip, 0, value)


def if_any_bit(bits: int, skip: int) -> Instruction:
    return (_ANY_BIT, skip, 0, bits)


def if_above(value: int, skip: int) -> Instruction:
    return (_GREATER, skip, 0, value)


def unless_at_least(value: int, skip: int) -> Instruction:
    return (_AT_LEAST, 0, skip, value)


def rule(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    """For one call; the body must end in a verdict on every path."""
    return [unless_equal(number, len(body)), *body]


def allow_only(index: int, values: Iterable[int], otherwise: int) -> list[Instruction]:
    """Allowed if the argument is one of these."""
    wanted = sorted(set(values))
    tests = [if_equal(value, len(wanted) - place) for place, value in enumerate(wanted)]
    return [argument(index), *tests, give(otherwise), give(ALLOW)]


def allow_numbers(numbers: Iterable[int]) -> list[Instruction]:
    """Neighbouring numbers are tested as one range, which keeps the program short."""
    program: list[Instruction] = []
    for low, high in _ranges(sorted(set(numbers))):
        if low == high:
            program += [unless_equal(low, 1), give(ALLOW)]
        else:
            program += [unless_at_least(low, 2), if_above(high, 1), give(ALLOW)]
    return program


def assemble(program: Sequence[Instruction]) -> bytes:
    if len(program) > LONGEST_FILTER:
        raise ValueError(f"a filter of {len(program)} instructions is too long")
    for place, (operation, yes, no, _) in enumerate(program):
        if max(yes, no) > 255 or place + 1 + max(yes, no) >= len(program) + (operation == _RETURN):
            raise ValueError(f"instruction {place} jumps out of the filter")
    return b"".join(struct.pack("<HBBI", *each) for each in program)


def _ranges(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
            yield numbers[start], number
            start = place + 1


FILES = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek open openat openat2 creat
stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 getcwd chdir fchdir
mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat readlink readlinkat
truncate ftruncate fadvise64 readahead fsync fdatasync sync_file_range flock
umask copy_file_range sendfile dup dup2 dup3 pipe pipe2 fgetxattr flistxattr cachestat
"""
MARKS = "chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat"
ATTRIBUTES = "getxattr lgetxattr listxattr llistxattr"
"""What is done to a file by its name, or through a handle for reading, and Landlock does not see: only where there is a root of its own."""
MEMORY = """
mmap munmap mprotect mremap madvise brk msync mincore membarrier mseal pkey_alloc pkey_free pkey_mprotect
map_shadow_stack get_mempolicy
"""
TIME = """
nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times getitimer setitimer alarm pause
timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime
"""
EVENTS = """
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
signalfd signalfd4 shutdown getsockopt getsockname getpeername
"""
ITSELF = """
getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid capget uname
sysinfo getrusage getrlimit getcpu getpriority sched_yield sched_getaffinity sched_getparam sched_getscheduler
sched_get_priority_max sched_get_priority_min sched_rr_get_interval getrandom exit exit_group restart_syscall
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack
futex futex_waitv futex_wake futex_wait futex_requeue set_robust_list set_tid_address rseq arch_prctl
wait4 waitid
"""
NETWORK = "bind connect accept accept4 listen setsockopt"
PROCESSES = "fork vfork setsid setpgid setpriority sched_setaffinity sched_setscheduler sched_setparam"
EXEC = "execve"
RUNTIME = "memfd_create"
"""What V8 wants besides."""

_THREAD, _NAMESPACES = 0x10000, 0x7E020080
_TERMINAL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: nothing that a terminal would take as typed."""
_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1033, 1034)
"""Copies, flags, locks, seals; not larger pipes, nor leases, nor who is signalled about a handle, and with which signal."""
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)
"""Get dumpable, set and get name, get seccomp, read bounding set, get no_new_privs, name a mapping."""
_FLAGS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3, "recvfrom": 3, "recvmsg": 2, "recvmmsg": 3}
"""Which argument they are. Urgent data on a local socket serves nobody but who attacks the kernel, or the reader."""
_URGENT = 1
_REFUSED = fail(errno.EPERM)


@dataclass(frozen=True)
class Permits:
    """What a kind of program needs beyond computing and its own files."""

    execute: bool = False
    processes: bool = False
    network: bool = False
    runtime: bool = False
    alone: int = 0
    """Where there is no namespace of processes: the only one it may signal, itself."""


def names(permits: Permits) -> list[str]:
    """Calls that are allowed whatever their arguments."""
    wanted = [FILES, MEMORY, TIME, EVENTS, ITSELF]
    wanted += [NETWORK] * permits.network + [PROCESSES] * permits.processes
    wanted += [EXEC] * permits.execute + [RUNTIME] * permits.runtime
    wanted += [MARKS, ATTRIBUTES, "fallocate"] * (not permits.alone)
    wanted += ["kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo"] * (not permits.alone)
    return " ".join(wanted).split()


def program(permits: Permits, arch: Arch) -> list[Instruction]:
    calls = arch.calls
    start = [load(ARCH), if_equal(arch.audit, 1), give(KILL), load(NUMBER)]
    if arch.x32:
        start += [unless_at_least(0x40000000, 1), give(KILL)]
    allowed = allow_numbers(calls[name] for name in _known(names(permits)) if name in calls)
    end = [unless_at_least(arch.newest + 1, 1), give(fail(errno.ENOSYS)), give(_REFUSED)]
    return [*start, *_conditional(permits, calls), *allowed, *end]


def install(permits: Permits) -> None:
    code = assemble(program(permits, here()))
    buffer = ctypes.create_string_buffer(code, len(code))
    given = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    syscall("prctl", PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _conditional(permits: Permits, calls: dict[str, int]) -> list[Instruction]:
    """Calls whose arguments decide."""
    found = [
        *rule(calls["clone3"], [give(fail(errno.ENOSYS))])
    ]  # libraries then use clone, which shows its flags
    found += rule(calls["clone"], _clone(permits.processes))
    if not permits.processes:
        for name in ("fork", "vfork"):
            found += rule(calls[name], [give(fail(errno.EAGAIN))]) if name in calls else []
    found += rule(calls["socket"], _socket() if permits.network else [give(fail(errno.EACCES))])
    if permits.network:  # larger buffers than usual are said to be had
        found += rule(
            calls["setsockopt"],
            [
                argument(2),
                if_equal(socket.SO_SNDBUF, 2),
                if_equal(socket.SO_RCVBUF, 1),
                give(ALLOW),
                give(fail(0)),
            ],
        )
    found += rule(calls["socketpair"], _socketpair())
    found += rule(calls["ioctl"], allow_only(1, _TERMINAL, fail(errno.ENOTTY)))
    found += rule(calls["fcntl"], allow_only(1, _FCNTL, _REFUSED))
    found += rule(calls["prctl"], allow_only(0, _PRCTL, _REFUSED))
    found += rule(calls["prlimit64"], allow_only(0, (0,), _REFUSED))
    for name, index in _FLAGS.items():
        body = [argument(index), if_any_bit(_URGENT, 1), give(ALLOW), give(_REFUSED)]
        found += rule(calls[name], body)
    return found + (_alone(permits.alone, calls) if permits.alone else [])


def _alone(pid: int, calls: dict[str, int]) -> list[Instruction]:
    """Beside the user's own processes and files: it signals nobody else, and marks nothing by its name."""
    found = []
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        found += rule(calls[name], allow_only(0, (pid,), _REFUSED))
    # Whoever copies a file copies its mode and times: it is told that this was done, and nothing happens.
    answers = dict.fromkeys(MARKS.split(), 0) | dict.fromkeys(ATTRIBUTES.split(), errno.ENOTSUP)
    answers["fallocate"] = (
        errno.EOPNOTSUPP
    )  # disk is taken by writing only, which is slow enough to be watched
    for name, answer in answers.items():
        found += rule(calls[name], [give(fail(answer))]) if name in calls else []
    return found


def _clone(processes: bool) -> list[Instruction]:
    """A thread, or where others may be started a process; never a namespace."""
    needed = [] if processes else [if_any_bit(_THREAD, 1), give(fail(errno.EAGAIN))]
    return [
        argument(0),
        if_any_bit(_NAMESPACES, len(needed) + 1),
        *needed,
        give(ALLOW),
        give(_REFUSED),
    ]


def _socket() -> list[Instruction]:
    """TCP, and nothing else: the only thing that listens is the egress proxy."""
    refused = fail(errno.EACCES)
    return [
        argument(0), if_equal(socket.AF_INET, 2), if_equal(socket.AF_INET6, 1), give(refused),
        argument(1), mask(0xF), if_equal(socket.SOCK_STREAM, 1), give(refused), give(ALLOW),
    ]  # fmt: skip


def _socketpair() -> list[Instruction]:
    """Streams only: a datagram socket could still be sent to any socket that has a name in the file system."""
    refused = fail(errno.EACCES)
    return [
        argument(0), if_equal(socket.AF_UNIX, 1), give(refused),
        argument(1), mask(0xF), if_equal(socket.SOCK_STREAM, 1), give(refused), give(ALLOW),
    ]  # fmt: skip


def _known(wanted: list[str]) -> list[str]:
    """Old calls exist on one architecture only; a name that neither has is a mistake."""
    unknown = [name for name in wanted if name not in X86_64.calls and name not in AARCH64.calls]
    if unknown:
        raise ValueError(f"there is no system call {unknown[0]!r}")
    return wanted
