"""What a long call says while it runs: one line at the terminal, gone when it ends."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from toolgate.core.display import visible
from toolgate.kits.terminal import speech

PATIENCE = 0.4
"""Seconds before the first word: what is quick needs none."""
PAUSE = 0.1
_CLEAR = "\r\x1b[2K"


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
