"""Which system calls a program may make. What is not named is refused.

A refused call fails with an errno, so that libraries that try something and fall back keep working. Two failures mean
something: starting a process fails as it does at a limit (EAGAIN), and numbers newer than our table do not exist
(ENOSYS). A call made for another architecture ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import socket
from dataclasses import dataclass

from . import bpf
from .arch import AARCH64, X86_64, Arch, here
from .kernel import PR_SET_SECCOMP, syscall

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
_REFUSED = bpf.fail(errno.EPERM)


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


def program(permits: Permits, arch: Arch) -> list[bpf.Instruction]:
    calls = arch.calls
    start = [bpf.load(bpf.ARCH), bpf.if_equal(arch.audit, 1), bpf.give(bpf.KILL), bpf.load(bpf.NUMBER)]
    if arch.x32:
        start += [bpf.unless_at_least(0x40000000, 1), bpf.give(bpf.KILL)]
    allowed = bpf.allow_numbers(calls[name] for name in _known(names(permits)) if name in calls)
    end = [bpf.unless_at_least(arch.newest + 1, 1), bpf.give(bpf.fail(errno.ENOSYS)), bpf.give(_REFUSED)]
    return [*start, *_conditional(permits, calls), *allowed, *end]


def install(permits: Permits) -> None:
    code = bpf.assemble(program(permits, here()))
    buffer = ctypes.create_string_buffer(code, len(code))
    given = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    syscall("prctl", PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _conditional(permits: Permits, calls: dict[str, int]) -> list[bpf.Instruction]:
    """Calls whose arguments decide."""
    found = [
        *bpf.rule(calls["clone3"], [bpf.give(bpf.fail(errno.ENOSYS))])
    ]  # libraries then use clone, which shows its flags
    found += bpf.rule(calls["clone"], _clone(permits.processes))
    if not permits.processes:
        for name in ("fork", "vfork"):
            found += bpf.rule(calls[name], [bpf.give(bpf.fail(errno.EAGAIN))]) if name in calls else []
    found += bpf.rule(calls["socket"], _socket() if permits.network else [bpf.give(bpf.fail(errno.EACCES))])
    found += bpf.rule(calls["socketpair"], _socketpair())
    found += bpf.rule(calls["ioctl"], bpf.allow_only(1, _TERMINAL, bpf.fail(errno.ENOTTY)))
    found += bpf.rule(calls["fcntl"], bpf.allow_only(1, _FCNTL, _REFUSED))
    found += bpf.rule(calls["prctl"], bpf.allow_only(0, _PRCTL, _REFUSED))
    found += bpf.rule(calls["prlimit64"], bpf.allow_only(0, (0,), _REFUSED))
    for name, index in _FLAGS.items():
        body = [bpf.argument(index), bpf.if_any_bit(_URGENT, 1), bpf.give(bpf.ALLOW), bpf.give(_REFUSED)]
        found += bpf.rule(calls[name], body)
    return found + (_alone(permits.alone, calls) if permits.alone else [])


def _alone(pid: int, calls: dict[str, int]) -> list[bpf.Instruction]:
    """Beside the user's own processes and files: it signals nobody else, and marks nothing by its name."""
    found = []
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        found += bpf.rule(calls[name], bpf.allow_only(0, (pid,), _REFUSED))
    # Whoever copies a file copies its mode and times: it is told that this was done, and nothing happens.
    answers = dict.fromkeys(MARKS.split(), 0) | dict.fromkeys(ATTRIBUTES.split(), errno.ENOTSUP)
    answers["fallocate"] = (
        errno.EOPNOTSUPP
    )  # disk is taken by writing only, which is slow enough to be watched
    for name, answer in answers.items():
        found += bpf.rule(calls[name], [bpf.give(bpf.fail(answer))]) if name in calls else []
    return found


def _clone(processes: bool) -> list[bpf.Instruction]:
    """A thread, or where others may be started a process; never a namespace."""
    needed = [] if processes else [bpf.if_any_bit(_THREAD, 1), bpf.give(bpf.fail(errno.EAGAIN))]
    return [
        bpf.argument(0),
        bpf.if_any_bit(_NAMESPACES, len(needed) + 1),
        *needed,
        bpf.give(bpf.ALLOW),
        bpf.give(_REFUSED),
    ]


def _socket() -> list[bpf.Instruction]:
    """TCP, and nothing else: the only thing that listens is the egress proxy."""
    refused = bpf.fail(errno.EACCES)
    return [
        bpf.argument(0), bpf.if_equal(socket.AF_INET, 2), bpf.if_equal(socket.AF_INET6, 1), bpf.give(refused),
        bpf.argument(1), bpf.mask(0xF), bpf.if_equal(socket.SOCK_STREAM, 1), bpf.give(refused), bpf.give(bpf.ALLOW),
    ]  # fmt: skip


def _socketpair() -> list[bpf.Instruction]:
    """Streams only: a datagram socket could still be sent to any socket that has a name in the file system."""
    refused = bpf.fail(errno.EACCES)
    return [
        bpf.argument(0), bpf.if_equal(socket.AF_UNIX, 1), bpf.give(refused),
        bpf.argument(1), bpf.mask(0xF), bpf.if_equal(socket.SOCK_STREAM, 1), bpf.give(refused), bpf.give(bpf.ALLOW),
    ]  # fmt: skip


def _known(wanted: list[str]) -> list[str]:
    """Old calls exist on one architecture only; a name that neither has is a mistake."""
    unknown = [name for name in wanted if name not in X86_64.calls and name not in AARCH64.calls]
    if unknown:
        raise ValueError(f"there is no system call {unknown[0]!r}")
    return wanted
