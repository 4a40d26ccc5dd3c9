"""Proofs that files are still what a result was made from.

Of one file: the same file, with the same status and the same bytes. The bytes are read and hashed again, not inferred from times. A change within one tick of the clock, one that sets
the times back, and one through a memory map leave no trace in a status; none of them gets past a hash. What is
saved is all that comes after reading: decoding, parsing, shaping. That is most of the time of the tools that use it.
Of a tree: that nothing has happened in it since before it was looked through, as a watch tells.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable

from toolgate.core.evidence import gathering
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held
from toolgate.workspace.look import identity, read_all
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import open_to_list, open_to_read
from toolgate.workspace.watch import Enters, Watch

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
