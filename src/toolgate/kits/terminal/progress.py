"""Progress on stderr, there for a human at a terminal and absent for programs: a bar, or one line that is gone at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from toolgate.core.display import visible
from toolgate.kits.terminal import speech

PATIENCE = 0.4
"""Seconds before the first word: what is quick needs none."""
PAUSE = 0.1
_CLEAR = "\r\x1b[2K"


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


class Ticker:
    """May be told from any thread. Silent where nobody looks on."""

    def __init__(self) -> None:
        self._shown = False
        self._over = not sys.stderr.isatty() or speech.mode.json
        self._next = time.monotonic() + PATIENCE
        self._lock = threading.Lock()

    def __enter__(self) -> Ticker:
        return self

    def __call__(self, fraction: float, message: str) -> None:
        now = time.monotonic()
        if self._over or now < self._next:
            return
        with self._lock:
            if self._over:  # it ended meanwhile: nothing may be written behind its result
                return
            self._next = now + PAUSE
            self._shown = True
            part = f"{fraction:.0%} " if 0 < fraction <= 1 else ""
            sys.stderr.write(_CLEAR + visible(part + message)[: speech.err().width - 1])
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._over = True
            if self._shown:
                sys.stderr.write(_CLEAR)
                sys.stderr.flush()
