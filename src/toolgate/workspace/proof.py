"""Proofs that a file is still what a result was made from: the same file, with the same status and the same bytes.

The bytes are read and hashed again, not inferred from times. A change within one tick of the clock, one that sets
the times back, and one through a memory map leave no trace in a status; none of them gets past a hash. What is
saved is all that comes after reading: decoding, parsing, shaping. That is most of the time of the tools that use it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from toolgate.core.evidence import gathering
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held
from toolgate.workspace.look import identity, read_all
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import open_to_read

Open = Callable[[], int]
"""Opens the file by its path, by the rules of the moment, or raises."""


@dataclass(frozen=True, slots=True)
class FileProof:
    open: Open
    status: tuple[int, ...] | None
    size: int
    digest: bytes

    def stood(self) -> bool:
        return True  # the note is of the very bytes that were read

    async def holds(self) -> bool:
        return await asyncio.to_thread(self._holds)

    def _holds(self) -> bool:
        with held(self.open()) as handle:
            if identity(os.fstat(handle)) != self.status:
                return False
            return _digest(read_all(handle, "", self.size)) == self.digest


def note_file(mounts: Mounts, path: MountPath, status: os.stat_result, content: bytes) -> None:
    """A tool has read this, whole, by the rules for reading."""
    note(lambda: open_to_read(mounts, path), status, content)


def note(opening: Open, status: os.stat_result, content: bytes) -> None:
    evidence = gathering()
    if evidence is not None:
        evidence.add(FileProof(opening, identity(status), len(content), _digest(content)))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
