"""Locks between the processes of a project: advisory, and dropped by the system when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.storage import durable

PATIENCE = 20.0


@contextmanager
def only_writer(file: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of the one writer."""
    handle = acquire(file, patience)
    try:
        yield
    finally:
        os.close(handle)


def acquire(file: Path, patience: float = PATIENCE, *, shared: bool = False) -> int:
    """A handle that holds the lock until it is closed. Waiting is bounded: a stuck process stops no other for ever."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        durable.hold(handle, how, "another toolgate process has been writing", patience)
    except BaseException:
        os.close(handle)
        raise
    return handle
