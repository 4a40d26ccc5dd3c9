"""The index that git is given for one comparison with the working directory."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.git.index import MOST_BYTES, Index, checked, composed
from toolgate.workspace.git.locate import Place

_INSIDE = b"/.git"
MOST_KEPT = 8 << 20
"""Bytes of an index that is kept for the next comparison."""


@dataclass(frozen=True, slots=True)
class Known:
    content: bytes
    index: Index
    composed: bytes
    inside: list[bytes]
    """Where a repository would be that took the place of a file."""


@dataclass(slots=True)
class Tracked:
    """Reads a repository's index; one that is as it was is not read again."""

    place: Place
    _known: Known | None = None

    def copy(self, directory: Path, hash_name: str) -> Path:
        """A copy that keeps its time: git compares files' times with it. None is made where there is no index."""
        copy = directory / "index"
        content = self.place.read("index", MOST_BYTES)
        status = self.place.status("index")
        if content is not None and status is not None:
            known = self._read(content, hash_name)
            gone = _repositories(self.place, known.inside)
            copy.write_bytes(composed(_without(known.index, gone), hash_name) if gone else known.composed)
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return copy

    def _read(self, content: bytes, hash_name: str) -> Known:
        known = self._known
        if known is None or known.content != content:
            index = checked(content, hash_name)
            known = Known(
                content, index, composed(index, hash_name), [entry.name + _INSIDE for entry in index.entries]
            )
            self._known = known if len(content) <= MOST_KEPT else None
        return known


def _repositories(place: Place, inside: list[bytes]) -> set[bytes]:
    """Files in whose place there is a repository now: they are gone. Git would open it to see which commit it is at, and
    its `.git` may lead anywhere."""
    handle = open_directory(place.mount.root, place.top, place.top, follow=False)
    with held(handle):
        there = [path for path in inside if os.access(path, os.F_OK, dir_fd=handle, follow_symlinks=False)]
        names = {path.removesuffix(_INSIDE) for path in there}
        return {name for name in names if _is_directory(handle, name)}


def _without(index: Index, names: set[bytes]) -> Index:
    return Index([entry for entry in index.entries if entry.name not in names])


def _is_directory(top: int, name: bytes) -> bool:
    """Not a link to one, which git only reads."""
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode)
    return False
