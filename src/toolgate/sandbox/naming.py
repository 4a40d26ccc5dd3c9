"""Which limit a program ran into, where nobody had to stop it: from how it ended and what it said about it.

The last lines of stderr are the program's own word. It can lie, about nothing but itself.
"""

from __future__ import annotations

import os
import signal

from toolgate.sandbox.job import Job, Limit
from toolgate.sandbox.zygote import Ended

_TAIL = 2000
_SAID: tuple[tuple[bytes, Limit], ...] = (
    (b"MemoryError", "memory"),
    (b"Cannot allocate memory", "memory"),
    (b"out of memory", "memory"),
    (b"allocation failed", "memory"),
    (b"can't start new thread", "processes"),
    (b"Resource temporarily unavailable", "processes"),
    (b"annot fork", "processes"),
    (b"Too many open files", "files"),
    (b"File too large", "disk"),
    (b"File size limit exceeded", "disk"),
    (b"No space left on device", "disk"),
)


def limit_of(job: Job, ended: Ended, stderr: bytes, work: int) -> Limit | None:
    # The kernel's limit counts ticks, what it reports is measured: on a busy machine they are far apart.
    if _killed(ended) and ended.cpu_s >= job.limits.cpu_s * 0.5:
        return "cpu"
    if -ended.code == signal.SIGXFSZ or ended.code == 128 + signal.SIGXFSZ:
        return "disk"
    if ended.code == 0:
        return None
    said = _said(stderr)
    return "inodes" if said == "disk" and _no_more_names(work) else said


def _killed(ended: Ended) -> bool:
    return ended.code in (-signal.SIGKILL, -signal.SIGXCPU, 128 + signal.SIGKILL, 128 + signal.SIGXCPU)


def _said(stderr: bytes) -> Limit | None:
    tail = stderr[-_TAIL:]
    places = [(tail.rfind(text), limit) for text, limit in _SAID]
    place, limit = max(places, key=lambda pair: pair[0])
    return limit if place >= 0 else None


def _no_more_names(work: int) -> bool:
    """Of a file system of its own; the host's counts no names for one program."""
    found = os.statvfs(work)
    return found.f_files > 0 and found.f_ffree == 0
