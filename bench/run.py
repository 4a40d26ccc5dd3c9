"""What a benchmark is handed: where to write, how long to go on, whom to tell."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Line

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    scratch: Path
    quick: bool
    tell: Tell
    """Says on the terminal what is being measured."""
    postgres: Callable[[], AbstractContextManager[str] | None]
    """The address of an empty database on a real server, or None where there is no server to start."""

    repository: Path | None = None
    """A real repository to search and to ask about its history; None: one is generated."""

    def count(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        made = self.scratch / name
        made.mkdir()
        return made

    def clone(self, name: str) -> Path | None:
        """The named repository, copied: nothing is measured in, or written to, what is somebody's."""
        if self.repository is None:
            return None
        made = self.scratch / name
        source = str(self.repository.resolve())
        subprocess.run(["git", "clone", "-q", source, str(made)], check=True)
        return made


Benchmark = Callable[[Run], Awaitable[list[Line]]]
