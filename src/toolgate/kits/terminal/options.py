"""Options that many commands share, each written once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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


def channel() -> str:
    """What the ledger records as the place of an answer: a person's terminal, or a program's command."""
    return "terminal" if sys.stdin.isatty() and sys.stderr.isatty() else "cli"
