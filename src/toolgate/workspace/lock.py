"""One writer per project, across processes: an advisory lock that the system drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.core.errors import Unavailable

_PAUSE = 0.005


@contextmanager
def only_writer(file: Path, patience: float = 20.0) -> Iterator[None]:
    """Hold the lock. Waiting is bounded, so that a stuck process cannot take every thread with it."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(handle, patience)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"another toolgate process has been writing for {patience:g} seconds", "try again"
                ) from None
            time.sleep(_PAUSE)
