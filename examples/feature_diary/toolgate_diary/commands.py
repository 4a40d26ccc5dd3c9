"""`toolgate diary`: what the personas wrote, for the person at the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Option, command


@command(epilog="Example: toolgate diary --persona builder -n 5")
def diary(
    persona: options.Persona = "",
    count: Annotated[int, Option("-n", "--lines", help="How many.", min=1, max=1000)] = 20,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Read what the personas wrote, the newest first."""
    project.run(_read(persona, count, root))


async def _read(persona: str, count: int, root: Path | None) -> None:
    async with project.gate(root) as gate:
        found = await gate.feature("diary").read(persona, count)
    if speech.finish(found):
        return
    if not found:
        speech.say("nobody has written anything")
        return
    rows = [[one["id"], one["persona"], one["text"]] for one in found]
    speech.put(speech.table(["entry|right", "persona", "text|cut"], rows))
