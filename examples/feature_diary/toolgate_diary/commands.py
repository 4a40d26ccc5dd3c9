"""`toolgate diary`: what the personas wrote, newest first."""

from typing import Annotated

from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Option, command


@command(epilog="Example: toolgate diary --persona builder")
def diary(
    persona: options.Persona = "",
    limit: Annotated[int, Option("--limit", help="How many.", min=1, max=100)] = 20,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Read what the personas wrote, newest first."""
    project.run(_show(persona, limit, root))


async def _show(persona: str, limit: int, root: options.Root) -> None:
    async with project.gate(root) as gate:
        entries = await gate.feature("diary").read(persona, limit)
    if speech.finish(entries):
        return
    for entry in entries:
        speech.say(f"{entry['id']}  {entry['persona']}  {entry['text']}")
