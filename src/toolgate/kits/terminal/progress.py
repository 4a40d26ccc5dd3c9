"""Progress bar on stderr: there for a human at a terminal, absent for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolgate.kits.terminal import speech


class ProgressBar:
    """Call it with how much is done, and of how much."""

    def __init__(self, progress: Any = None, task: Any = None) -> None:
        self._progress, self._task = progress, task

    def __call__(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=total)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something else is printed."""
        if self._progress is not None:
            self._progress.stop()
        try:
            yield
        finally:
            if self._progress is not None:
                self._progress.start()


@contextmanager
def bar(what: str) -> Iterator[ProgressBar]:
    if speech.mode.json or not sys.stderr.isatty():
        yield ProgressBar()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=speech.err(), transient=True) as progress:
        yield ProgressBar(progress, progress.add_task(what, total=None))
