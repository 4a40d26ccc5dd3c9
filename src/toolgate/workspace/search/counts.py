"""What `rg --count --null --stats` says, piece by piece: files that match with their lines, at last what it looked at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SEARCHED = re.compile(rb"^(\d+) files searched$", re.MULTILINE)


@dataclass(slots=True)
class Counts:
    files: int = 0
    _rest: bytes = b""

    def take(self, chunk: bytes) -> Iterator[tuple[str, int]]:
        """The files that this piece completes. A name may have line endings; it ends with a NUL."""
        said, at = self._rest + chunk, 0
        while (zero := said.find(b"\0", at)) >= 0 and (end := said.find(b"\n", zero)) >= 0:
            self.files += 1
            yield os.fsdecode(said[at:zero]).removeprefix("./"), int(said[zero + 1 : end])
            at = end + 1
        self._rest = said[at:]

    @property
    def searched(self) -> int:
        """How many files it looked at; at least those that match, where it did not come to its end."""
        found = _SEARCHED.search(self._rest)
        return int(found.group(1)) if found else self.files
