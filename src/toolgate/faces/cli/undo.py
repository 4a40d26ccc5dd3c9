"""`toolgate undo`: take back what an event did, where it can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgate.faces.cli import options, project
from toolgate.faces.cli.call import carry, show

app = options.family()


@app.command(epilog="Example: toolgate undo 42")
def undo(
    event: Annotated[int, typer.Argument(help="The event that committed it: `toolgate ledger tail`.")],
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Take back what an event did, if the files are still as it left them. Recorded, and undoable itself."""
    project.run(_undo(event, reason, root))


async def _undo(event: int, reason: str, root: Path | None) -> int:
    project.trusted(root)
    return show(await carry(lambda gate, wait: gate.undo(event, reason=reason, wait=wait), root))
