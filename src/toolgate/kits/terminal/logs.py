"""Logs on stderr: one plain line for a person, one JSON object a line for a program."""

from __future__ import annotations

import logging
import sys

from toolgate.core.display import visible
from toolgate.project.logs import JsonFormatter

_STYLES = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31"}


class PlainFormatter(logging.Formatter):
    """For terminals. Traces stay in the log file unless they were asked for."""

    def __init__(self, traces: bool) -> None:
        super().__init__()
        self._traces = traces

    def format(self, record: logging.LogRecord) -> str:
        word = record.levelname.lower()
        line = f"\x1b[{_STYLES.get(record.levelname, '2')}m{word}\x1b[0m {visible(record.getMessage())}"
        if self._traces and hasattr(record, "trace"):
            line += f"\n{visible(str(record.trace), keep_lines=True)}"
        elif self._traces and record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class BriefJson(JsonFormatter):
    """Without traces: they are in the project's log."""

    def format(self, record: logging.LogRecord) -> str:
        kept = {name: value for name, value in record.__dict__.items() if name != "trace"}
        bare = logging.makeLogRecord(kept | {"exc_info": None})
        return super().format(bare)


def setup(verbose: bool = False, debug: bool = False) -> None:
    """Replaces the handler of an earlier command in the same process."""
    logger = logging.getLogger("toolgate")
    for handler in [handler for handler in logger.handlers if getattr(handler, "of_cli", False)]:
        logger.removeHandler(handler)
    fresh = logging.StreamHandler(sys.stderr)
    fresh.of_cli = True  # type: ignore[attr-defined]
    fresh.setLevel(logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING)
    if sys.stderr.isatty():
        fresh.setFormatter(PlainFormatter(debug))
    else:
        fresh.setFormatter(JsonFormatter() if debug else BriefJson())
    logger.addHandler(fresh)
    logger.propagate = False
    if verbose or debug:
        logger.setLevel(logging.DEBUG if debug else logging.INFO)
