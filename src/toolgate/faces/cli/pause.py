"""`toolgate pause` and `resume`: stop everything at once, in every process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from toolgate.core.errors import InvalidArgs
from toolgate.core.names import PERSONA
from toolgate.kits.terminal import complete, options, project, speech
from toolgate.kits.terminal.command import Argument, command
from toolgate.project import opening
from toolgate.project.checked import check_persona

if TYPE_CHECKING:
    from toolgate.project.opening import Setup

Who = Annotated[str, Argument(help="One persona; without it, everybody.", complete=complete.personas)]


@command(epilog="Example: toolgate pause builder --reason 'it edits the wrong files'")
def pause(
    persona: Who = "", reason: options.Reason = "", root: options.Root = None, json: options.Json = False
) -> None:
    """Stop a persona, or everything, at once. Calls that already run are not interrupted."""
    project.control(_pause(persona, reason, root))


async def _pause(persona: str, reason: str, root: options.Root) -> None:
    setup = project.recorded(root)
    if persona:
        _check(persona, setup)
    async with opening.open_desk(setup) as desk:
        await desk.pause(persona, reason=reason)
    if not speech.finish({"persona": persona, "paused": True}):
        speech.say(
            f"{persona or 'everybody'} is paused; `toolgate resume{' ' + persona if persona else ''}` lifts it"
        )


def _check(persona: str, setup: Setup) -> None:
    if setup.problem is None:
        check_persona(persona, setup.says)
    elif not PERSONA.fullmatch(persona):
        raise InvalidArgs(f"{persona[:80]!r} is not a persona's name", "use letters, digits, - and _")
    else:
        speech.note(f"whether there is a persona {persona} cannot be checked", "yellow")


@command(epilog="Example: toolgate resume builder")
def resume(persona: Who = "", root: options.Root = None, json: options.Json = False) -> None:
    """Lift a pause."""
    project.control(_resume(persona, root))


async def _resume(persona: str, root: options.Root) -> None:
    async with project.desk(root) as desk:
        await desk.resume(persona)
    if not speech.finish({"persona": persona, "paused": False}):
        speech.say(f"{persona or 'everybody'} may go on")
