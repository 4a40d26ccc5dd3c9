"""Contents of files before and after each change, kept by their hash, up to a budget.

`ab/cdef…` below the given directory, named by SHA-256. An image is whole or absent, private to the user, and
verified whenever it is read: what undo and recovery write back is what was there, or nothing.

Several processes share the directory. Putting takes a shared lock, dropping an exclusive one: whatever is there while
that is held belongs to calls that the journal knows, or was left half written by a killed process.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolgate.core.change import Change, content_hash
from toolgate.core.errors import Failed, NotFound, TooLarge
from toolgate.workspace.confine import held
from toolgate.workspace.lock import acquire

_HASH = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")
_TEMPORARY = ".toolgate-tmp-"
_PARTS = 16
TOTAL = 1 << 30
CHANGE = 256 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    count: int
    bytes: int
    budget: int


class Images:
    def __init__(self, directory: Path, total: int = TOTAL, change: int = CHANGE) -> None:
        """At most `total` bytes are kept in all, and `change` bytes for one change."""
        self._directory = directory
        self._lock = directory.with_name(directory.name + ".lock")
        self.total, self.change = total, min(change, total)
        self._size: int | None = None
        """At the last count, and what was put since; other processes put theirs."""
        self._since = 0
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def check(self, change: Change) -> None:
        """Refuse a change that could not be kept, before anybody is asked about it: all that runs can be undone."""
        size = sum(map(len, contents_of(change)))
        if size > self.change:
            raise TooLarge(
                f"this change has {size:,} bytes to keep for undo, and the limit is {self.change:,}",
                "make it in parts, or raise `images` in toolgate.yaml",
                data={"bytes": size, "limit": self.change},
            )

    def put(self, contents: Iterable[bytes]) -> bool:
        """Keep these, durably: on return they survive a power cut. Whether it is time to make room."""
        with held(acquire(self._lock, shared=True)):
            folders = {self._put(content) for content in contents}
            for folder in folders:
                _sync(folder)
            if folders:
                _sync(self._directory)
        return self._full()

    def get(self, digest: str) -> bytes:
        try:
            content = _read(self._file(digest), self.change)
        except FileNotFoundError:
            raise NotFound(
                f"the image {digest[:19]}… is not kept any more",
                "restore the file from git or a backup; `images` in toolgate.yaml says how much is kept",
            ) from None
        if content is None or content_hash(content) != digest:
            raise Failed(f"the kept image {digest[:19]}… is damaged", "restore it from a backup of .toolgate")
        return content

    def has(self, digest: str) -> bool:
        """Whether it is there and sound."""
        try:
            self.get(digest)
        except (NotFound, Failed):
            return False
        return True

    def usage(self) -> Usage:
        sizes = [status.st_size for _, status in self._all()]
        return Usage(len(sizes), sum(sizes), self.total)

    def hold(self) -> int:
        """A lock under which nobody puts anything; closing the handle lets it go.

        Only while it is held does the journal know every call whose images are here.
        """
        return acquire(self._lock)

    def drop(self, needed: frozenset[str]) -> int:
        """Drop what was put longest ago, until the rest fits. How many bytes went."""
        found = sorted(self._all(), key=lambda item: (item[1].st_mtime_ns, item[0]))
        left = sum(status.st_size for _, status in found)
        before = left
        for file, status in found:
            if left <= self.total:
                break
            if f"sha256:{file.parent.name}{file.name}" not in needed:
                file.unlink(missing_ok=True)
                left -= status.st_size
        self._sweep()
        self._size, self._since = left, 0
        return before - left

    def _put(self, content: bytes) -> Path:
        digest = content_hash(content)
        assert digest is not None
        file = self._file(digest)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if self.has(digest):
            os.utime(file)  # wanted again: the last to be dropped
        else:  # a damaged one is replaced
            _write(file, content)
            self._since += len(content)
        # Synced even if it was there: another process may have put it there a moment ago.
        return file.parent

    def _full(self) -> bool:
        """Counting takes a walk, so it is not done for every change; each process may go over by a part."""
        if self._size is None or self._since > self.total // _PARTS:
            self._size, self._since = self.usage().bytes, 0
        return self._size + self._since > self.total

    def _all(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder in self._directory.glob("[0-9a-f][0-9a-f]"):
            for file in folder.iterdir():
                with suppress(FileNotFoundError):
                    if not file.name.startswith(_TEMPORARY):
                        yield file, file.stat()

    def _sweep(self) -> None:
        """What killed processes left half written; nobody alive is writing now."""
        for file in self._directory.glob(f"[0-9a-f][0-9a-f]/{_TEMPORARY}*"):
            file.unlink(missing_ok=True)

    def _file(self, digest: str) -> Path:
        match = _HASH.fullmatch(digest)
        if match is None:
            raise Failed(f"{digest!r} does not name an image", "the record it came from is damaged")
        return self._directory / match[1] / match[2]


def contents_of(change: Change) -> list[bytes]:
    """What must be kept of a change, each content once."""
    sides = (side for file in change.files if file.kind == "file" for side in (file.before, file.after))
    return list(dict.fromkeys(side for side in sides if side is not None))


def _read(file: Path, limit: int) -> bytes | None:
    """None for what cannot be an image, because we never make such: a link, a pipe, a device, more than a change has."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    with held(handle):
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max(limit, CHANGE):
            return None
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read()


def _write(file: Path, content: bytes) -> None:
    temporary = file.with_name(_TEMPORARY + secrets.token_hex(8))
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
