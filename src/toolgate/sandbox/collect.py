"""What a program left in its work directory, taken through a handle of that directory once the program is gone.

Regular files with one name only. Whatever else is there, is too deep, too large or one too many, is said and not taken.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from toolgate.sandbox.inside.order import SCRAP
from toolgate.sandbox.job import Left

MOST_DEEP = 16
SAID = 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


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
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
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
        below = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
        try:
            _walk(below, path + "/", keep, found)
        finally:
            os.close(below)
        return
    if why := _unfit(status, keep, found):
        found.drop(path, why)
        return
    handle = os.open(name, _FLAGS, dir_fd=directory)
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
