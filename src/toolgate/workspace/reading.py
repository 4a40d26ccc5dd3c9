"""Reading of files: what is at a path right now, opening it, and proofs that what was read still holds.

In opening, the rules of a mount hold for what a path leads to, not only for how it is spelled. A path without links is what
it says. One with links is walked name by name, and every name on the way is judged
before it is opened, so that `notes.txt -> .env` is refused in the same words whether or not there is an `.env`. Where
there is no such file, the name that was probably meant is told: models misspell, and try again as they are told.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections.abc import Callable
from itertools import islice
from typing import Literal, Self

from toolgate.core.change import DIRECTORY
from toolgate.core.errors import BlockedPath, CallError, Conflict, NotFound, TooLarge
from toolgate.core.evidence import gathering
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.policy.hard import MountRules
from toolgate.workspace.confine import Root, held, open_by_walking, open_directory, open_file
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.watch import Enters, Watch

_CHUNK = 1 << 20
_ATTEMPTS = 4
_YOUNG_NS = 2_000_000_000
"""Stamps are as coarse as this on the coarsest file systems: a second write soon after a first one may not show."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was found; no hash and no status means there was none."""

    hash: str | None = None
    status: os.stat_result | None = None

    def still(self, status: os.stat_result | None) -> bool:
        return identity(self.status) == identity(status)


def look(mounts: Mounts, path: MountPath) -> SeenFile:
    """Hash the file itself; a link in its place is refused, not followed. A directory has a word for a hash."""
    mount, relative = mounts.resolve(path)
    try:
        handle = open_file(mount.root, relative, path.shown, follow=False)
    except NotFound:
        return SeenFile()
    except BlockedPath:
        status = status_of(mounts, path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise
        return SeenFile(DIRECTORY, status)
    with held(handle):
        status = os.fstat(handle)  # before the content, so that a write in between shows
        digest = hashlib.sha256()
        while chunk := os.read(handle, _CHUNK):
            digest.update(chunk)
    return SeenFile("sha256:" + digest.hexdigest(), status)


def kind_of(mounts: Mounts, path: MountPath) -> Literal["file", "directory"] | None:
    """What is there, by the same rules as `look` and without reading it, however large it is."""
    mount, relative = mounts.resolve(path)
    try:
        os.close(open_file(mount.root, relative, path.shown, follow=False))
    except NotFound:
        return None
    except BlockedPath:
        status = status_of(mounts, path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise
        return "directory"
    return "file"


def status_of(mounts: Mounts, path: MountPath) -> os.stat_result | None:
    """The status of whatever has this name, without opening it."""
    try:
        with mounts.parent(path) as (parent, name):
            return status_in(parent, name)
    except NotFound:
        return None


def status_in(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_all(handle: int, shown: str, limit: int) -> bytes:
    """The content of an open file. Counted while reading: the size it claims may be out of date."""
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
        parts.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise TooLarge(f"{shown!r} is larger than {limit:,} bytes", "read a part of it")
    return b"".join(parts)


def read_steady(handle: int, shown: str, limit: int) -> tuple[bytes, os.stat_result]:
    """The content as it was at one moment, also where somebody writes into the file meanwhile; and its status then."""
    for _ in range(_ATTEMPTS):
        with Steady(handle) as steady:
            os.lseek(handle, 0, os.SEEK_SET)
            content = read_all(handle, shown, limit)
            if steady.young:  # its times do not tell, so the bytes must
                os.lseek(handle, 0, os.SEEK_SET)
                steady.moved = read_all(handle, shown, limit) != content
        if not steady.moved:
            return content, steady.status
    raise unsteady(shown)


class Steady:
    """Whether a file was written into within the `with` block. Two looks at its status tell, unless it is young."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.moved = False

    def __enter__(self) -> Self:
        now = time.time_ns()
        self.status = os.fstat(self._handle)
        self.young = max(self.status.st_mtime_ns, self.status.st_ctime_ns) > now - _YOUNG_NS
        return self

    def __exit__(self, *_: object) -> None:
        self.moved = self.moved or identity(self.status) != identity(os.fstat(self._handle))


def unsteady(shown: str) -> Conflict:
    return Conflict(f"{shown!r} is being written all the time", "try again when its writer rests")


def identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


MOST_NAMES = 2_000
"""Of a directory so many are compared; it is a help, not a search."""
LIKE = 0.66
ADVICE = "check the path; `fs.find` finds files by name"


def advice(mounts: Mounts, path: MountPath) -> str:
    """What to do about a path that is not there. Names only what the mount's rules show."""
    try:
        found = _near(mounts, path)
    except (CallError, OSError):
        found = None
    return f"did you mean {found.shown!r}? Else {ADVICE}" if found else ADVICE


def _near(mounts: Mounts, path: MountPath) -> MountPath | None:
    """The same path with the first name that is missing put right, if all of it is there then."""
    import difflib

    names = path.relative.split("/")
    for index, name in enumerate(names):
        above = "/".join(names[:index]) or "."
        if status_of(mounts, MountPath(f"{path.mount}:{'/'.join(names[: index + 1])}")) is not None:
            continue
        for meant in difflib.get_close_matches(name, _names(mounts, path, above), n=3, cutoff=LIKE):
            found = MountPath.parse(f"{path.mount}:{'/'.join([*names[:index], meant, *names[index + 1 :]])}")
            if mounts.rules(found).refuse(found, written=False) is None and status_of(mounts, found):
                return found
        return None
    return None


def _names(mounts: Mounts, path: MountPath, directory: str) -> list[str]:
    mount, _ = mounts.resolve(path)
    with (
        held(open_directory(mount.root, directory, directory, follow=False)) as handle,
        os.scandir(handle) as items,
    ):
        names = [item.name for item in islice(items, MOST_NAMES)]
    secrets = mounts.secrets()  # how near a guess is to a name would tell of a secret in it
    return [name for name in names if secrets is None or not secrets.spans(os.fsencode(name))]


def open_to_read(mounts: Mounts, path: MountPath) -> int:
    """A handle of a regular file that this mount lets tools read."""
    mount, relative = mounts.resolve(path)
    rules = mounts.rules(path)
    judge(rules, path, path)
    try:
        try:
            handle = open_file(mount.root, relative, path.shown, follow=False)
        except BlockedPath:
            if not rules.kind.links:
                raise
            handle = open_file(_judging(mount.root, rules, path), relative, path.shown)
    except NotFound as error:
        raise NotFound(error.message, advice(mounts, path)) from None
    return _checked_links(handle, rules, path)


def open_to_list(mounts: Mounts, path: MountPath) -> tuple[int, MountPath]:
    """A handle of a directory, and the path that it really has."""
    mount, relative = mounts.resolve(path)
    rules = mounts.rules(path)
    judge(rules, path, path)
    try:
        return open_directory(mount.root, relative, path.shown, follow=False), path
    except (BlockedPath, NotFound) as error:
        if not rules.kind.links and isinstance(error, BlockedPath):
            raise
        names: list[str] = []
        root = _judging(mount.root, rules, path, names)
        try:
            handle = open_directory(root, relative, path.shown)
        except NotFound:
            raise _no_directory(mounts, path) from None
    return handle, MountPath(f"{path.mount}:{'/'.join(names) or '.'}")


def _no_directory(mounts: Mounts, path: MountPath) -> NotFound:
    """Something that is there and may be seen is not said to be missing."""
    found = status_of(mounts, path)
    if found is None or stat.S_ISLNK(found.st_mode):
        return NotFound(f"there is no {path.shown!r}", advice(mounts, path))
    return NotFound(f"{path.shown!r} is not a directory", "name a directory; `fs.read` reads a file")


def judge(rules: MountRules, path: MountPath, real: MountPath) -> None:
    refusal = rules.refuse(real, written=False)
    if refusal is not None:
        raise BlockedPath(
            f"{path.shown!r} is, or leads to, a name that the mount {path.mount} keeps shut",
            "choose another path, or open the name in `mounts` of toolgate.yaml",
        )


def _judging(root: Root, rules: MountRules, path: MountPath, seen: list[str] | None = None) -> Root:
    """The same root, opened by a walk that judges every name."""

    def visit(names: list[str]) -> None:
        judge(rules, path, MountPath(f"{path.mount}:{'/'.join(names) or '.'}"))
        if seen is not None:
            seen[:] = names

    def opener(handle: int, relative: str, flags: int, follow: bool) -> int:
        return open_by_walking(handle, relative, flags, follow, visit)

    return Root(root.handle, opener)


def _checked_links(handle: int, rules: MountRules, path: MountPath) -> int:
    status = os.fstat(handle)
    if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and not rules.hard_links:
        os.close(handle)
        raise BlockedPath(
            f"{path.shown!r} has several names (hard links), and one may be outside the mount",
            "replace it by a copy, or set `hard_links: true` for the mount",
        )
    return handle


# Proofs that files are still what a result was made from. Of one file: the same file, with the same status
# and the same bytes. The bytes are read and hashed again, not inferred from times. A change within one tick
# of the clock, one that sets the times back, and one through a memory map leave no trace in a status; none
# of them gets past a hash. What is saved is all that comes after reading: decoding, parsing, shaping. That
# is most of the time of the tools that use it. Of a tree: that nothing has happened in it since before it
# was looked through, as a watch tells.

Open = Callable[[], int]
"""Opens the file by its path, by the rules of the moment, or raises."""


SMALL = 16 << 10
"""Bytes that are read again at once: going to a thread for them takes several times as long."""


@dataclass(frozen=True, slots=True)
class FileProof:
    open: Open
    status: tuple[int, ...] | None
    size: int
    digest: bytes

    def stood(self) -> bool:
        return True  # the note is of the very bytes that were read

    async def holds(self) -> bool:
        if self.size <= SMALL:
            return self._holds()
        return await asyncio.to_thread(self._holds)

    def _holds(self) -> bool:
        with held(self.open()) as handle:
            if identity(os.fstat(handle)) != self.status:
                return False
            return _digest(read_all(handle, "", self.size)) == self.digest


@dataclass(frozen=True, slots=True)
class TreeProof:
    mounts: Mounts
    path: MountPath
    watch: Watch
    where: tuple[int, int, str]

    def stood(self) -> bool:
        return True  # what happened meanwhile is in the queue

    async def holds(self) -> bool:
        return await asyncio.to_thread(self._holds)

    def _holds(self) -> bool:
        """The path may lead to another tree by now, which no event of this one tells."""
        handle, real = open_to_list(self.mounts, self.path)
        with held(handle):
            return _where(handle, real) == self.where and self.watch.quiet()


def note_file(mounts: Mounts, path: MountPath, status: os.stat_result, content: bytes) -> None:
    """A tool has read this, whole, by the rules for reading."""
    note(lambda: open_to_read(mounts, path), status, content)


def note(opening: Open, status: os.stat_result, content: bytes) -> None:
    evidence = gathering()
    if evidence is not None:
        evidence.add(FileProof(opening, identity(status), len(content), _digest(content)))


def note_tree(mounts: Mounts, path: MountPath, handle: int, real: MountPath, enters: Enters) -> None:
    """A tool is about to look through this tree. Before it does: what happens from now on must be seen."""
    evidence = gathering()
    if evidence is None or evidence.spoiled:
        return
    watch = mounts.watches.begin(handle, real.relative, enters) if evidence.again else None
    if watch is None:  # asked for the first time: watching would cost more than it is likely to save
        evidence.spoil()
        return
    evidence.add(TreeProof(mounts, path, watch, _where(handle, real)))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _where(handle: int, real: MountPath) -> tuple[int, int, str]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino, real
