"""`toolgate undo`: take back what an event did, where it can be taken back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toolgate.core.errors import Unavailable
from toolgate.faces.cli import options, project

app = options.family()


@app.command(epilog="Example: toolgate undo 42")
def undo(
    event: Annotated[int, typer.Argument(help="The event that committed it: `toolgate ledger tail`.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Take back what an event did, if the files are still as it left them."""
    project.run(_undo(event, root))


async def _undo(event: int, root: Any) -> None:
    project.trusted(root)
    raise Unavailable(
        f"this version of toolgate cannot undo event {event} by itself yet",
        f"`toolgate ledger show {event}` names the files and their earlier hashes; the earlier contents are kept in "
        ".toolgate/images",
    )
