"""Whether anything was mounted or unmounted: the one change of a tree that no watch tells."""

from __future__ import annotations

import os
import select
import threading

_TABLE = "/proc/self/mountinfo"


class _Table:
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
        self._handle = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        self._process = os.getpid()
        self._changes += 1

    def _polled(self) -> bool:
        table = select.poll()
        table.register(self._handle, select.POLLPRI)
        return bool(table.poll(0))


changes = _Table().changes
"""A number that is the same as long as nothing was mounted or unmounted."""
