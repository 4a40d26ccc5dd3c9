"""What DBOS has to say goes where everything else goes, not to the terminal."""

from __future__ import annotations

import logging

log = logging.getLogger("toolgate.jobs")


class Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        # that it ends what we told it to end is nothing to warn anybody of
        level = logging.DEBUG if message.startswith("Asyncio task cancelled") else record.levelno
        log.log(level, "%s", message, exc_info=record.exc_info)


def take_over() -> None:
    """Before anything of DBOS is used: it writes to stderr where it finds no handler."""
    theirs = logging.getLogger("dbos")
    theirs.setLevel(logging.WARNING)
    if not any(isinstance(handler, Forward) for handler in theirs.handlers):
        theirs.addHandler(Forward())
    theirs.propagate = False
