"""`toolgate token`: the words by which the server knows the human and each persona."""

from __future__ import annotations

import sys
from typing import Annotated

from toolgate.core.errors import InvalidArgs
from toolgate.core.names import HUMAN
from toolgate.kits.terminal import complete, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.web.tokens import Tokens, path_for
from toolgate.project import trust
from toolgate.project.opening import Setup


@command(epilog="Example: toolgate token builder")
def token(
    persona: Annotated[
        str, Argument(help="Whose; default: the human's.", complete=complete.personas)
    ] = HUMAN,
    new: Annotated[bool, Option("--new", help="Replace it: the old one stops working at once.")] = False,
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


def of_project(setup: Setup) -> Tokens:
    return Tokens(path_for(trust.state_dir(), trust.make_project_id(setup.root)))
