"""Files of a program: what is put into its directories, what it leaves there, and what it changed in its view of the project.

What it left was made by somebody hostile: every name is opened by itself, below a handle, without following anything,
and how many there are and how large they are is counted while reading. Of its work directory, regular files with one name
only are taken. Whatever else is there, is too deep, too large or one too many, is said and not taken.
In a layer of the project, a name that stands for a removed one is a character device 0/0, and a directory that hides what
was there before has a mark among its attributes. Where the kernel has no layers, the program worked in a copy, which is
compared with the project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolgate.sandbox.inside.kernel import held
from toolgate.sandbox.inside.order import SCRAP
from toolgate.sandbox.inside.view import MAX_BYTES, MAX_NAMES
from toolgate.sandbox.job import Altered, Job, Left, View

MAX_DEPTH = 64
"""One handle is open for each level."""
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class Layer:
    """`disk` bytes and `names` names are read at most; the rest is said in `dropped`."""

    disk: int
    names: int
    dropped: list[str] = field(default_factory=list)
    skip: frozenset[str] = frozenset()
    """Relative names that are no part of it."""

    def read(self, handle: int) -> tuple[Altered, ...]:
        return tuple(self._directory(handle, "", 1))

    def _directory(self, handle: int, below: str, depth: int) -> Iterator[Altered]:
        for name in sorted(os.listdir(handle)):
            self.names -= 1
            if self.names < 0:
                self.dropped.append(f"changes after {below + _shown(name)}: there are too many")
                return
            path = below + name
            if path in self.skip:
                continue
            if not _is_text(name):
                self.dropped.append(f"{below + _shown(name)}: its name is not text")
                continue
            try:
                yield from self._entry(handle, name, path, depth)
            except OSError as error:
                self.dropped.append(f"{path}: {error.strerror}")

    def _entry(self, parent: int, name: str, path: str, depth: int) -> Iterator[Altered]:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            yield Altered(path, "gone")
        elif stat.S_ISREG(status.st_mode):
            yield from self._file(parent, name, path, mode)
        elif not stat.S_ISDIR(status.st_mode):
            yield Altered(path, "other")
        elif depth > MAX_DEPTH:
            self.dropped.append(f"{path}: it lies too deep")
        else:
            with held(os.open(name, DIRECTORY, dir_fd=parent)) as handle:
                if _opaque(handle):
                    yield Altered(path, "gone")
                yield Altered(path, "directory", mode=mode)
                yield from self._directory(handle, path + "/", depth + 1)

    def _file(self, parent: int, name: str, path: str, mode: int) -> Iterator[Altered]:
        with held(os.open(name, READ, dir_fd=parent)) as handle:
            content = content_of(handle, self.disk)
        if content is None:
            self.dropped.append(f"{path}: it is too large")
            return
        self.disk -= len(content)
        yield Altered(path, "file", content, mode)


def content_of(handle: int, room: int) -> bytes | None:
    """None where it is more than there is room for, whatever size it claims: files can have holes."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > room:
        return None
    parts: list[bytes] = []
    while room >= 0 and (part := os.read(handle, 1 << 20)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts) if room >= 0 else None


def _opaque(handle: int) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(handle, name) in (b"y", b"x"):
                return True
        except OSError:  # no such mark, or none of that kind here
            continue
    return False


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


Kind = Literal["file", "directory", "other"]


def compare(handle: int, view: View, layer: Layer) -> tuple[Altered, ...]:
    """`handle` is the copy, in which the program may have made anything of anything."""
    found = layer.read(handle)
    with held(os.open(view.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
        before = dict(_names(root, "", layer.skip.union(view.hidden)))
        altered = tuple(each for each in found if _differs(root, each, before.get(each.path)))
    return (*_gone(found, before, layer), *altered)


def _names(handle: int, below: str, hidden: frozenset[str]) -> Iterator[tuple[str, Kind]]:
    for name in os.listdir(handle):
        path = below + name
        if path in hidden:
            continue
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            yield path, "file" if stat.S_ISREG(mode) else "other"
            continue
        yield path, "directory"
        with held(os.open(name, DIRECTORY, dir_fd=handle)) as inner:
            yield from _names(inner, path + "/", hidden)


def _differs(root: int, each: Altered, before: Kind | None) -> bool:
    if each.kind != "file" or before != "file":
        return each.kind != before
    content, mode = _original(root, each.path, len(each.content))
    return content != each.content or mode != each.mode


def _original(root: int, path: str, room: int) -> tuple[bytes | None, int]:
    *way, name = path.split("/")
    parent = os.dup(root)
    try:
        for part in way:
            inner = os.open(part, DIRECTORY, dir_fd=parent)
            os.close(parent)
            parent = inner
        handle = os.open(name, READ, dir_fd=parent)
    finally:
        os.close(parent)
    with held(handle):
        return content_of(handle, room), stat.S_IMODE(os.fstat(handle).st_mode) & 0o777


def _gone(found: tuple[Altered, ...], before: dict[str, Kind], layer: Layer) -> Iterator[Altered]:
    """What is in a directory that went is told by the directory. What could not be read has not gone."""
    there = {each.path: each.kind for each in found}
    unread = {text.partition(": ")[0] for text in layer.dropped}
    for path, kind in sorted(before.items()):
        above = path.rpartition("/")[0]
        if there.get(path) == kind or path in unread or layer.names < 0:
            continue
        if not above or there.get(above) == "directory":
            yield Altered(path, "gone")


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def altered(job: Job, handle: int, copy: bool) -> tuple[tuple[Altered, ...], list[str]]:
    """Read once the program is gone. Of a copy, what was there before counts, too."""
    assert job.view is not None
    disk, names = job.limits.disk_bytes, job.limits.inodes
    environment = job.view.environment
    skip = frozenset(environment.directories if environment is not None else ())
    if not copy:
        layer = Layer(disk, names, skip=skip)
        return layer.read(handle), layer.dropped
    layer = Layer(disk + MAX_BYTES, names + MAX_NAMES, skip=skip)
    return compare(handle, job.view, layer), layer.dropped


def put(handle: int, files: Sequence[Left], owner: int) -> None:
    """Into the work directory, which is empty but for what is ours; nobody runs in it yet."""
    for file in files:
        *way, name = file.path.split("/")
        parent = os.dup(handle)
        try:
            for part in way:
                parent = _inner(parent, part, owner)
            with os.fdopen(os.open(name, _WRITE, 0o644, dir_fd=parent), "wb") as stream:
                stream.write(file.content)
                _give(stream.fileno(), owner)
        finally:
            os.close(parent)


def _inner(parent: int, name: str, owner: int) -> int:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
        made = True
    except FileExistsError:
        made = False
    inner = os.open(name, DIRECTORY, dir_fd=parent)
    os.close(parent)
    if made:
        _give(inner, owner)
    return inner


def _give(handle: int, owner: int) -> None:
    """To the job's user, where it has one of its own."""
    if owner:
        os.fchown(handle, owner, owner)


MOST_DEEP = 16
SAID = 20


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """How much is taken."""

    files: int = 100
    bytes: int = 16 << 20


@dataclass(slots=True)
class Collected:
    left: list[Left] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    more: int = 0
    own: str = ""
    """A name in the work directory that is not the program's."""

    def drop(self, path: str, why: str) -> None:
        if len(self.dropped) < SAID:
            self.dropped.append(f"{path[:200]!r}: {why}")
        else:
            self.more += 1


def anything(directory: int, own: str = "") -> bool:
    """Whether the program left something; `own` is a name in it that is not the program's."""
    with os.scandir(directory) as entries:
        return any(entry.name not in (SCRAP, own) for entry in entries)


def collect(directory: int, keep: KeepLimits, own: str = "") -> Collected:
    found = Collected(own=own)
    _walk(directory, "", keep, found)
    if found.more:
        found.dropped.append(f"and {found.more} more")
    return found


def _walk(directory: int, above: str, keep: KeepLimits, found: Collected) -> None:
    with os.scandir(directory) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = f"{above}{name}"
        if path in (SCRAP, found.own):
            continue
        if not _is_text(name):
            found.drop(path, "its name is not text")
            continue
        try:
            _take(directory, name, path, keep, found)
        except OSError as error:
            found.drop(path, error.strerror or "it cannot be read")


def _take(directory: int, name: str, path: str, keep: KeepLimits, found: Collected) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        if path.count("/") >= MOST_DEEP:
            found.drop(path, f"it is more than {MOST_DEEP} directories deep")
            return
        with held(os.open(name, DIRECTORY, dir_fd=directory)) as below:
            _walk(below, path + "/", keep, found)
        return
    if why := _unfit(status, keep, found):
        found.drop(path, why)
        return
    handle = os.open(name, READ, dir_fd=directory)
    with open(handle, "rb") as stream:
        content = stream.read(status.st_size)
    found.left.append(Left(path, content, stat.S_IMODE(status.st_mode) & 0o777))


def _unfit(status: os.stat_result, keep: KeepLimits, found: Collected) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_nlink != 1:
        return "it has more than one name"
    if len(found.left) >= keep.files:
        return f"more than {keep.files} files were left"
    taken = sum(len(one.content) for one in found.left)
    if status.st_size > keep.bytes - taken:
        return f"it has {status.st_size:,} bytes, and {keep.bytes:,} are taken in all"
    return ""
