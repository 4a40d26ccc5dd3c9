"""What DBOS has to say goes where everything else goes, not to the terminal."""

from __future__ import annotations

import logging

log = logging.getLogger("toolgate.jobs")


class Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, "%s", record.getMessage(), exc_info=record.exc_info)


def take_over() -> None:
    """Before anything of DBOS is used: it writes to stderr where it finds no handler."""
    theirs = logging.getLogger("dbos")
    theirs.setLevel(logging.WARNING)
    if not any(isinstance(handler, Forward) for handler in theirs.handlers):
        theirs.addHandler(Forward())
    theirs.propagate = False
