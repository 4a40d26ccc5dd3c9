"""The options that many commands share, each written once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.faces.cli import complete, speech


def _json(ctx: typer.Context, value: bool) -> bool:
    """Known to the whole process at once, so that errors speak JSON too."""
    speech.mode.json = value
    speech.mode.command = ctx.command_path.partition(" ")[2]
    return value


Root = Annotated[
    Path | None,
    typer.Option("--root", help="The project; default: the nearest parent directory with a toolgate.yaml."),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON result and nothing else.", callback=_json, is_eager=True),
]
Persona = Annotated[
    str, typer.Option("--persona", "-p", help="Whose call it is.", autocompletion=complete.personas)
]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; goes into the ledger.")]
ToolName = Annotated[str, typer.Argument(help="The tool's name.", autocompletion=complete.tools)]
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def family(help: str = "") -> typer.Typer:  # noqa: A002 - typer's own word
    """A Typer for one command or one family of commands."""
    return typer.Typer(
        help=help or None,
        add_completion=False,
        no_args_is_help=bool(help),
        rich_markup_mode="rich",
        context_settings=SETTINGS,
    )


def channel() -> str:
    """What the ledger records as the place of an answer: a person's terminal, or a program's command."""
    return "terminal" if sys.stdin.isatty() and sys.stderr.isatty() else "cli"
