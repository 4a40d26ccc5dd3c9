"""Options that many commands share, each written once; and ids as people give them: whole, or an unambiguous beginning or end."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from toolgate.core.clock import SECOND, span_of
from toolgate.core.errors import InvalidArgs
from toolgate.kits.terminal import complete, speech
from toolgate.kits.terminal.command import Argument, Option

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from toolgate.storage.port import Filter, Row

    FindRows = Callable[[Filter], Awaitable[list[Row]]]

SHORTEST = 6
_WHOLE = 29
"""`c_` and 27 digits of time, process and count."""
_SHOWN = 8


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


async def whole_id(find: FindRows, ident: str, kinds: str = "cqg", among: Iterable[str] = ()) -> str:
    """The id that this stands for. Numbers are events, and what fits nothing is left for others to refuse.

    `kinds` are the first letters of the ids that are meant; `among` are those a person is likely to mean.
    """
    event = ident.isdigit() and not ident.startswith("0") and "c" in kinds
    if event or len(ident) >= _WHOLE or not re.fullmatch(r"[a-z0-9_]+", ident):
        return ident
    fitting = {name for name in among if _fits(name, ident, kinds)}
    if len(ident) < SHORTEST:
        if fitting:
            raise InvalidArgs(f"{ident!r} is too short for an id", f"give at least {SHORTEST} characters")
        return ident
    if not fitting:
        from toolgate.storage.port import Filter

        rows = await find(Filter(about=ident, newest_first=True))
        fitting = {name for row in rows for name in (row.call, row.ref) if _fits(name, ident, kinds)}
    if len(fitting) > 1:
        listed = sorted(fitting, reverse=True)
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        raise InvalidArgs(
            f"{ident!r} could be any of {', '.join(listed[:_SHOWN])}{more}",
            "give more of it; the end of an id tells more than its beginning",
            data={"candidates": listed},
        )
    return fitting.pop() if fitting else ident


def _fits(name: str, part: str, kinds: str) -> bool:
    return name[:1] in kinds and name[1:2] == "_" and (name.startswith(part) or name.endswith(part))
