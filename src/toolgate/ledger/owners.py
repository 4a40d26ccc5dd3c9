"""Which process owns a running call, and whether that process still lives.

On one machine an owner is a locked file: the kernel releases the lock however the process ends. The id also
carries pid and start time, so that a deleted lock file does not make a living owner look dead.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Protocol

from toolgate.core.call import new_id

_here: set[str] = set()
"""The owners of this process: one that has left is dead, though its process lives."""


class Owners(Protocol):
    """Who is alive among those that started calls."""

    me: str

    async def enter(self) -> None: ...

    async def leave(self) -> None: ...

    async def dead(self, owner: str) -> bool: ...


class FileOwners:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.me = f"{new_id('o')}-{os.getpid()}-{_started(os.getpid())}"
        self._handle: int | None = None

    async def enter(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self._directory / self.me, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _here.add(self.me)

    async def leave(self) -> None:
        if self._handle is not None:
            _here.discard(self.me)
            (self._directory / self.me).unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    async def dead(self, owner: str) -> bool:
        if owner == self.me:
            return False
        try:
            handle = os.open(self._directory / owner, os.O_RDWR)
        except FileNotFoundError:
            return not _same_process(owner)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            (self._directory / owner).unlink(missing_ok=True)
            return True
        finally:
            os.close(handle)


class SoleOwner:
    """For a ledger that lives and dies with its process."""

    def __init__(self) -> None:
        self.me = new_id("o")

    async def enter(self) -> None:
        return None

    async def leave(self) -> None:
        return None

    async def dead(self, owner: str) -> bool:
        return owner != self.me


def _same_process(owner: str) -> bool:
    try:
        _, pid, started = owner.rsplit("-", 2)
        if int(pid) == os.getpid():
            return owner in _here
        return _started(int(pid)) == int(started)
    except (ValueError, ProcessLookupError):
        return False


def _started(pid: int) -> int:
    """When a process began, in milliseconds; on Linux read as psutil does, which need not be loaded for it."""
    if not os.path.exists("/proc/self/stat"):
        import psutil

        try:
            return int(psutil.Process(pid).create_time() * 1000)
        except psutil.Error:
            raise ProcessLookupError(pid) from None
    try:
        with open(f"/proc/{pid}/stat", "rb") as told:
            ticks = int(told.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as told:
            booted = next(float(line.split()[1]) for line in told if line.startswith(b"btime"))
    except (FileNotFoundError, StopIteration, IndexError):
        raise ProcessLookupError(pid) from None
    return int((ticks / os.sysconf("SC_CLK_TCK") + booted) * 1000)
