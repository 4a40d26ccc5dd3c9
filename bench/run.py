"""What a benchmark is handed: where to write, how long to go on, whom to tell."""

from __future__ import annotations

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

    def count(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        made = self.scratch / name
        made.mkdir()
        return made


Benchmark = Callable[[Run], Awaitable[list[Line]]]
