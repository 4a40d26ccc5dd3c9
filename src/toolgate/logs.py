"""Logs: JSON lines in the project's state directory, readable with `system.logs`; the terminal's look is the CLI's."""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from toolgate.core.clock import iso

MAX_BYTES = 5 * 1024 * 1024
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
    """Messages may quote what tools were given: only the user reads them, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append to `path` while the gate is open; one old file is kept."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MAX_BYTES:
        path.replace(path.with_suffix(".old.jsonl"))
    handler = PrivateFile(path, delay=True)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("toolgate")
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
