"""Files of ours that hold everything or what was there before, whatever happens meanwhile; private from the first byte."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolgate.core.errors import Unavailable

PATIENCE = 20.0
_PAUSE = 0.005


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold the lock beside this file, which is `what`, in a directory of toolgate's own: what writers left there who were
    killed is taken away."""
    with locked(path, what):
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink(missing_ok=True)
        yield


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock beside this file. The system drops it if we die; waiting for somebody who is stuck is bounded."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        hold(handle, fcntl.LOCK_EX, f"another process has been changing {what}")
        yield
    finally:
        os.close(handle)


def hold(handle: int, how: int, busy: str, patience: float = PATIENCE) -> None:
    """Wait for the lock of this open file, but not for ever; `busy` says who has it."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(f"{busy} for {patience:g} seconds", "try again") from None
            time.sleep(_PAUSE)


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put this content there. It is on disk before we return."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _written(path, data, mode).replace(path)
    _sync(path.parent)


def rename(temporary: Path, path: Path) -> None:
    """Give a file that is on disk already its name, durably."""
    temporary.replace(path)
    _sync(path.parent)


def create(path: Path, data: bytes) -> None:
    """Put this content there unless something is there already: of two who try, the first one counts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = _written(path, data, 0o600)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
    _sync(path.parent)


def _written(path: Path, data: bytes, mode: int) -> Path:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def read(path: Path, most: int) -> bytes | None:
    """What is there, or None; no link is followed, and nothing that others can read or write is believed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", "check what it is") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unavailable(f"{path} is not a regular file", "remove it")
        if status.st_mode & 0o077:
            raise Unavailable(f"{path} can be read by others", f"`chmod 600 {path}`")
        data = file.read(most + 1)
    if len(data) > most:
        raise Unavailable(f"{path} is larger than {most:,} bytes", "restore it from a backup")
    return data


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
