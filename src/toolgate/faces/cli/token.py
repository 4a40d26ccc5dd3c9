"""`toolgate token`: the words by which the server knows the human and each persona."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from toolgate import app as composition
from toolgate.core.errors import InvalidArgs
from toolgate.core.names import HUMAN
from toolgate.faces.cli import complete, options, project, speech
from toolgate.kits.web.tokens import Tokens, path_for
from toolgate.project import config, trust

app = options.family()


@app.command(epilog="Example: toolgate token builder")
def token(
    persona: Annotated[
        str, typer.Argument(help="Whose; default: the human's.", autocompletion=complete.personas)
    ] = HUMAN,
    new: Annotated[
        bool, typer.Option("--new", help="Replace it: the old one stops working at once.")
    ] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Print a token. The human's approves and logs in to the console; a persona's only makes calls."""
    setup = project.trusted(root)
    if persona != HUMAN and persona not in setup.config.personas:
        known = ", ".join((HUMAN, *setup.config.personas))
        raise InvalidArgs(f"there is no persona {persona!r}", f"use one of: {known}")
    tokens = of_project(setup)
    found = tokens.renew(persona) if new else tokens.of(persona)
    if not speech.finish({"persona": persona, "token": found}):
        sys.stdout.write(found + "\n")


def of_project(setup: composition.Setup) -> Tokens:
    return Tokens(path_for(config.state_dir(), trust.make_project_id(setup.root)))
