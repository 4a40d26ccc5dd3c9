"""Logs: JSON lines in the project's state directory, readable with `system.logs`; the terminal's look is the CLI's."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

from toolgate.core.clock import iso

MAX_BYTES = 5 * 1024 * 1024
Redact = Callable[[str], object]
_EXTRA = ("call", "persona", "tool", "event")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": iso(round(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in _EXTRA if hasattr(record, name)}
        if hasattr(record, "trace"):
            entry["trace"] = record.trace
        elif record.exc_info:
            entry["trace"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class PrivateFile(logging.FileHandler):
    """Messages may quote what tools were given: only the user reads them, whatever the umask.

    A disk that is full costs messages and nothing else: no call fails for it, and no process ends badly."""

    _told = False

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told and sys.stderr is not None:
            self._told = True
            with suppress(OSError):
                sys.stderr.write(
                    f"toolgate: the log {self.baseFilename} cannot be written: {error.strerror}\n"
                )

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # what is still to be written has no room
            self.stream = None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Clean(logging.Filter):
    """Takes secrets out of a record before any handler writes it."""

    def __init__(self, redact: Redact) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = str(self._redact(message))
        if clean is not message and clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info:
            trace = "".join(traceback.format_exception(*record.exc_info))
            clean = str(self._redact(trace))
            if clean != trace:
                record.exc_info, record.exc_text, record.trace = None, None, clean
        return True


@contextmanager
def log_to(path: Path, redact: Redact) -> Iterator[None]:
    """Append to `path` while the gate is open; one old file is kept. No handler gets a secret meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MAX_BYTES:
        path.replace(path.with_suffix(".old.jsonl"))
    handler = PrivateFile(path, delay=True)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("toolgate")
    logger.addHandler(handler)
    clean, handlers = Clean(redact), list(logger.handlers)
    for each in handlers:
        each.addFilter(clean)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each in handlers:
            each.removeFilter(clean)
        logger.removeHandler(handler)
        handler.close()
