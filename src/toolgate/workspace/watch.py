"""Trees that are watched, so that what was found in one can be served again without looking at every file of it.

A watch is good until the first thing happens anywhere in its tree; then it is let go, and with it all that it
proved. A queue that overflowed is an event like any other. Mounting is the one change that no watch tells: the kernel's
list of mounts is asked. Where something cannot be watched, nothing is kept.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from toolgate.core.records import dataclass, field
from toolgate.workspace import inotify
from toolgate.workspace.confine import STEP, held

_MOUNT_TABLE = "/proc/self/mountinfo"


class _MountTable:
    """The kernel's list of mounts, open: once it has changed, whoever polls it hears so once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handle = -1
        self._process = 0
        self._changes = 0

    def changes(self) -> int:
        with self._lock:
            try:
                if self._process != os.getpid():  # a child would take its parent's news
                    self._open()
                elif self._polled():
                    self._changes += 1
            except OSError:
                self._changes += 1  # it cannot be known
            return self._changes

    def _open(self) -> None:
        self._handle = os.open(_MOUNT_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        self._process = os.getpid()
        self._changes += 1

    def _polled(self) -> bool:
        table = select.poll()
        table.register(self._handle, select.POLLPRI)
        return bool(table.poll(0))


mount_changes = _MountTable().changes
"""A number that is the same as long as nothing was mounted or unmounted."""


MAX_DIRECTORIES = 1024
MAX_TREES = 8
MAX_DEPTH = 128
_CHUNK = 1 << 16
_MOST_HEARD = 8 << 20
Enters = Callable[[str, str], bool]
"""Path in the mount and name of a directory → whether the tool looks into it."""


@dataclass(slots=True)
class Watch:
    _queue: int
    _mounted: int = field(default_factory=mount_changes)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def held(self) -> bool:
        return self._queue >= 0

    def quiet(self) -> bool:
        """Whether nothing has happened since the watch began."""
        with self._lock:
            if not self._current():
                return False
            with suppress(BlockingIOError):
                os.read(self._queue, 4096)
                self._close()
                return False
            return True

    def heard(self) -> bytes | None:
        """What has happened since it was last asked; None once it is let go, and where it would not end."""
        said = b""
        with self._lock:
            if not self._current():
                return None
            with suppress(BlockingIOError):
                while len(said) < _MOST_HEARD:
                    said += os.read(self._queue, _CHUNK)
                self._close()
                return None
            return said

    def close(self) -> None:
        with self._lock:
            self._close()

    def _current(self) -> bool:
        if self._mounted != mount_changes():
            self._close()
        return self._queue >= 0

    def _close(self) -> None:
        if self._queue >= 0:
            os.close(self._queue)
            self._queue = -1


class Watches:
    """The watched trees of a gate, not many: each holds a queue, of which a user has few."""

    def __init__(self, most: int = MAX_TREES) -> None:
        self._most = most
        self.ended = False
        self._open: deque[Watch] = deque()
        self._kept: list[Watch] = []
        self._lock = threading.Lock()

    @property
    def allowed(self) -> bool:
        return self._most > 0

    def begin(self, handle: int, relative: str, enters: Enters) -> Watch | None:
        if not self.allowed or not inotify.available():
            return None
        queue = inotify.begin()
        if queue is None:
            return None
        watch = Watch(queue)
        try:
            whole = _Arming(queue, os.fstat(handle).st_dev, enters, MAX_DIRECTORIES).directory(
                handle, relative, 1
            )
        except BaseException:
            watch.close()
            raise
        if not whole:
            watch.close()
            return None
        with self._lock:
            self._open.append(watch)
            while len(self._open) > self._most:
                self._open.popleft().close()
        return watch

    def keep(self, watch: Watch) -> None:
        """One that is not let go for others; at the end it is."""
        with self._lock:
            self._kept = [*(one for one in self._kept if one.held), watch]
            if self.ended:
                watch.close()

    def close(self) -> None:
        with self._lock:
            self.ended = True
            for watch in self._kept:
                watch.close()
            while self._open:
                self._open.pop().close()


@dataclass(slots=True)
class _Arming:
    queue: int
    device: int
    enters: Enters
    room: int

    def directory(self, handle: int, relative: str, depth: int) -> bool:
        """Watch first, list then: a directory that comes in between is an event."""
        self.room -= 1
        if self.room < 0 or depth > MAX_DEPTH or os.fstat(handle).st_dev != self.device:
            return False
        if not inotify.local(handle) or inotify.add(self.queue, handle) is None:
            return False
        prefix = "" if relative == "." else relative + "/"
        with os.scandir(handle) as items:
            names = [item.name for item in items if item.is_dir(follow_symlinks=False)]
        return all(
            self._below(handle, name, prefix + name, depth)
            for name in names
            if self.enters(prefix + name, name)
        )

    def _below(self, parent: int, name: str, relative: str, depth: int) -> bool:
        try:
            handle = os.open(name, STEP, dir_fd=parent)
        except OSError:  # the tool cannot enter it either; once it can, its parent says so
            return True
        with held(handle):
            return self.directory(handle, relative, depth + 1)
