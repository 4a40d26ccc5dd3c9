"""Directories on the host to work in, where there is no file system in memory: fresh, private, and removed afterwards.

Each process has one directory, held by a lock. What a killed process left is removed by the next one that starts.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import itertools
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolgate.sandbox.inside.kernel import held
from toolgate.sandbox.inside.order import SCRAP
from toolgate.sandbox.job import Limit

PREFIX = "toolgate-work-"
WATCH_S = 0.1
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class JobDirectories:
    def __init__(self) -> None:
        sweep()
        self.base = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._count = 0

    def new(self, uid: int, packages: tuple[str, ...]) -> str:
        self._count += 1
        place = self.base / str(self._count)
        for directory in (place, place / SCRAP):
            directory.mkdir(mode=0o700)
            if uid:
                os.chown(directory, uid, uid)
        if packages:
            shelf = Path(f"{place}.packages")
            shelf.mkdir()
            for package in packages:
                (shelf / Path(package).name).symlink_to(package)
        if uid:
            self.base.chmod(0o711)
        return str(place)

    def remove(self, place: str) -> None:
        _remove(Path(place))
        _remove(Path(f"{place}.packages"))
        _remove(Path(f"{place}.project"))

    def close(self) -> None:
        _remove(self.base)
        os.close(self._lock)


def sweep() -> None:
    """Remove what belonged to processes that are gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            handle = os.open(path, _DIRECTORY)
        except OSError:
            continue
        with held(handle), suppress(BlockingIOError):  # somebody works there
            if os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)


async def watch(place: str, disk: int, inodes: int, stop: Callable[[Limit], None]) -> None:
    """Nobody counts for a directory: look again and again.

    Files that have no name any more are not seen; when half of what was free is gone, it is stopped on suspicion.
    """
    floor = _free(place) // 2
    while True:
        limit = await asyncio.to_thread(_beyond, place, disk, inodes)
        if limit is None and _free(place) < floor:
            limit = "disk"
        if limit is not None:
            stop(limit)
            return
        await asyncio.sleep(WATCH_S)


def _free(place: str) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _beyond(place: str, disk: int, inodes: int) -> Limit | None:
    """Ends at the limit, however much there is; what is too deep to be looked at counts as too much."""
    size = count = 0
    waiting = [place]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if count > inodes + 1:
                        return "inodes"
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return "inodes"
    return "disk" if size > disk else None


def _remove(path: Path) -> None:
    """Whatever a program has made of it: locked, or deeper than a path can say. Directories are moved up, not gone into."""
    if not path.is_dir():
        return
    with _opened(str(path), None) as base:
        for number in itertools.count():
            names = os.listdir(base)
            if not names:
                break
            for place, name in enumerate(names):
                _flatten(base, name, f"{secrets.token_hex(4)}-{number}-{place}-")
    path.rmdir()


def _flatten(base: int, name: str, prefix: str) -> None:
    if not _is_directory(name, base):
        os.unlink(name, dir_fd=base)
        return
    with _opened(name, base) as below:
        for number, inner in enumerate(os.listdir(below)):
            if _is_directory(inner, below):
                os.chmod(inner, 0o700, dir_fd=below)
                os.rename(inner, f"{prefix}{number}", src_dir_fd=below, dst_dir_fd=base)
            else:
                os.unlink(inner, dir_fd=below)
    os.rmdir(name, dir_fd=base)


@contextmanager
def _opened(name: str, above: int | None) -> Iterator[int]:
    """A directory, opened for us whatever its mode. Its program is gone: it is still what it was a moment ago."""
    os.chmod(name, 0o700, dir_fd=above)
    with held(os.open(name, _DIRECTORY, dir_fd=above)) as handle:
        yield handle


def _is_directory(name: str, above: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
