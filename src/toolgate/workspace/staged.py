"""Staged files, and the lock of the one writer. A file is prepared under a temporary name beside its goal, then renamed over it.

A file only ever changes by rename, so every reader sees it old or new, never half.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolgate.core.change import DIRECTORY
from toolgate.core.errors import CallError, Conflict, NotFound
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.storage import durable
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import SeenFile, status_in

# Locks between the processes of a project: advisory, and dropped by the system when their holder dies.

PATIENCE = 20.0


@contextmanager
def only_writer(file: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of the one writer."""
    with held(acquire(file, patience)):
        yield


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


TEMPORARY = ".toolgate-tmp-"
_ACCESS = "system.posix_acl_access"
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Move:
    """One file from one content to another, both by hash; the bytes are fetched only when needed."""

    path: MountPath
    origin: str | None
    goal: str | None
    content: Callable[[], bytes | None]
    mode: int | None = None
    """The permission bits at the goal, where they are not simply kept."""

    @property
    def of_directory(self) -> bool:
        return DIRECTORY in (self.origin, self.goal)


@dataclass(frozen=True, slots=True)
class Staged:
    move: Move
    seen: SeenFile
    temporary: str
    """The prepared file's name beside its goal; empty for a deletion."""


def conflict(move: Move) -> Conflict:
    return Conflict(
        f"{move.path.shown!r} is not as it was when the change was planned",
        "read it again and plan again",
        data={"path": move.path.shown},
    )


def prepare(mounts: Mounts, move: Move, seen: SeenFile) -> Staged:
    content = move.content()
    if content is None:
        return Staged(move, seen, "")
    with mounts.parent(move.path, create=True) as (parent, name):
        temporary = _prefix(name) + os.urandom(6).hex()
        # A file that replaces a private one is private from its first byte; a new one gets what umask says.
        private = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, private, _first_mode(move, seen), dir_fd=parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                if seen.status is not None:
                    _keep_attributes(handle, parent, name)
                _resemble(handle, seen.status)
                if move.mode is not None:
                    os.fchmod(handle, move.mode & 0o777)
                os.fsync(handle)
        except BaseException:
            os.unlink(temporary, dir_fd=parent)
            raise
    return Staged(move, seen, temporary)


def put_in_place(mounts: Mounts, item: Staged) -> None:
    with mounts.parent(item.move.path) as (parent, name):
        if not item.seen.still(status_in(parent, name)):
            raise conflict(item.move)
        if item.temporary:
            os.replace(item.temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)


def discard(mounts: Mounts, staged: Iterable[Staged]) -> None:
    for item in staged:
        if item.temporary:
            with suppress(OSError, CallError), mounts.parent(item.move.path) as (parent, _):
                os.unlink(item.temporary, dir_fd=parent)


def sweep(mounts: Mounts, paths: Iterable[MountPath]) -> None:
    """Remove what killed processes prepared beside these files. Only under the lock: nobody else is preparing."""
    for path in paths:
        with suppress(CallError), mounts.parent(path) as (parent, name):
            for other in os.listdir(parent):
                if other.startswith(_prefix(name)):
                    with suppress(FileNotFoundError):
                        os.unlink(other, dir_fd=parent)


def sync_parents(mounts: Mounts, paths: Iterable[MountPath]) -> None:
    """Make renames durable, each directory once."""
    firsts = {path.rpartition("/")[0] or path.mount: path for path in paths}
    for path in firsts.values():
        with suppress(NotFound), mounts.parent(path) as (parent, _):
            os.fsync(parent)


def _prefix(name: str) -> str:
    """Tells whose leftover a temporary file is, whatever the length of the name."""
    return f"{TEMPORARY}{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}-"


def _first_mode(move: Move, seen: SeenFile) -> int:
    return 0o666 if seen.status is None and move.mode is None else 0o600


def _resemble(handle: int, status: os.stat_result | None) -> None:
    """Keep owner and mode of the file about to be replaced; never set-user-id bits, as no write keeps them."""
    if status is None:
        return
    mine = os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, stat.S_IMODE(status.st_mode) & 0o777)


def _keep_attributes(handle: int, parent: int, name: str) -> None:
    """The access list and the user's attributes of the file about to be replaced.

    With a list, the bits of the group are its mask: without it they would let the group in. And a directory may give
    every new file a list that this file never had.
    """
    if not hasattr(os, "listxattr"):  # Linux has it
        return
    with suppress(FileNotFoundError), held(os.open(name, _LOOK, dir_fd=parent)) as old:
        try:
            known = os.listxattr(old)
        except OSError:  # a file system without attributes
            return
        if _ACCESS not in known and _ACCESS in os.listxattr(handle):
            os.removexattr(handle, _ACCESS)
        if _ACCESS in known:
            os.setxattr(handle, _ACCESS, os.getxattr(old, _ACCESS))
        for key in known:
            if key.startswith("user."):
                with suppress(OSError):
                    os.setxattr(handle, key, os.getxattr(old, key))
