"""The index that git is given for one comparison with the working directory."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.git.index import MOST_BYTES, Index, checked, composed
from toolgate.workspace.git.locate import Place

MOST_KEPT = 50_000
"""Entries that are kept for the next comparison."""


@dataclass(slots=True)
class Tracked:
    """Reads a repository's index; one that is as it was is not read again."""

    place: Place
    _digest: bytes = b""
    _index: Index | None = None

    def copy(self, directory: Path, hash_name: str) -> Path:
        """A copy that keeps its time: git compares files' times with it. None is made where there is no index."""
        copy = directory / "index"
        content = self.place.read("index", MOST_BYTES)
        status = self.place.status("index")
        if content is not None and status is not None:
            index = _without_repositories(self.place, self._read(content, hash_name))
            copy.write_bytes(composed(index, hash_name))
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return copy

    def _read(self, content: bytes, hash_name: str) -> Index:
        digest = hashlib.sha256(content).digest()
        if self._index is not None and digest == self._digest:
            return self._index
        index = checked(content, hash_name)
        if len(index.entries) <= MOST_KEPT:
            self._digest, self._index = digest, index
        return index


def _without_repositories(place: Place, index: Index) -> Index:
    """A file in whose place there is a repository now is gone. Git would open it to see which commit it is at, and its
    `.git` may lead anywhere."""
    handle = open_directory(place.mount.root, place.top, place.top, follow=False)
    with held(handle):
        there = [
            entry.name
            for entry in index.entries
            if os.access(entry.name + b"/.git", os.F_OK, dir_fd=handle, follow_symlinks=False)
        ]
        gone = {name for name in there if _is_directory(handle, name)}
    return Index([entry for entry in index.entries if entry.name not in gone]) if gone else index


def _is_directory(top: int, name: bytes) -> bool:
    """Not a link to one, which git only reads."""
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode)
    return False
