"""Options that many commands share, each written once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from toolgate.core.clock import SECOND, span_of
from toolgate.core.errors import InvalidArgs
from toolgate.kits.terminal import complete, speech
from toolgate.kits.terminal.command import Argument, Option


def _json(path: str) -> None:
    """Known to the whole process at once, so that errors speak JSON too."""
    speech.mode.json = True
    speech.mode.command = path.partition(" ")[2]


Root = Annotated[
    Path | None,
    Option("--root", help="The project; default: the nearest parent directory with a toolgate.yaml."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON result and nothing else.", met=_json)]
Persona = Annotated[str, Option("--persona", "-p", help="Whose call it is.", complete=complete.personas)]
Reason = Annotated[str, Option("--reason", "-r", help="Why; goes into the ledger.")]
ToolName = Annotated[str, Argument(metavar="TOOL", help="The tool's name.", complete=complete.tools)]


def moment(text: str) -> int:
    """Microseconds of `10m` or `2h` ago, or of an ISO 8601 time; 0 for nothing."""
    if not text:
        return 0
    import time
    from datetime import datetime

    if (span := span_of(text)) is not None:
        return max(time.time_ns() // 1000 - span, 0)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgs(
            f"{text!r} is not a time", "write `10m`, `2h`, or a time such as 2026-01-31T12:00:00Z"
        ) from None
    return round(found.timestamp() * SECOND)


def channel() -> str:
    """What the ledger records as the place of an answer: a person's terminal, or a program's command."""
    return "terminal" if sys.stdin.isatty() and sys.stderr.isatty() else "cli"
