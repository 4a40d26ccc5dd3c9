"""`toolgate grants`: remembered answers, in words, and taking them back."""

from __future__ import annotations

from typing import Annotated, Any

from toolgate.core.errors import InvalidArgs
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, command
from toolgate.kits.words import grant_as_data, grant_in_words


@command(epilog="Example: toolgate grants revoke g_01a2b3 --reason 'the migration is done'")
def grants(
    action: Annotated[str, Argument(metavar="revoke", help="revoke")] = "",
    ident: Annotated[str, Argument(metavar="ID", help="The grant to revoke.")] = "",
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List the live grants, or revoke one."""
    if action not in ("", "revoke") or (action == "revoke" and not ident):
        raise InvalidArgs(
            f"{action!r} is not what grants can do", "write `toolgate grants` or `toolgate grants revoke ID`"
        )
    project.control(_revoke(ident, reason, root) if action else _list(root))


async def _list(root: Any) -> None:
    async with project.desk(root) as desk:
        found = await desk.grants()
    if speech.finish([grant_as_data(grant) for grant in found]):
        return
    if not found:
        speech.say("there are no live grants")
    for grant in found:
        row = grant.row
        speech.say(
            speech.safe(grant.id, "bold")
            + speech.safe(f"  given by {grant.body['by']}, used {grant.uses} times")
        )
        speech.say("  " + grant_in_words(row.persona, row.tool, grant.body, grant.expires))


async def _revoke(ident: str, reason: str, root: Any) -> None:
    async with project.desk(root) as desk:
        live = [grant.id for grant in await desk.grants()]
        ident = await options.whole_id(desk.ledger.backend.rows, ident, "g", live)
        await desk.revoke(ident, reason=reason, channel=options.channel())
    if not speech.finish({"id": ident, "revoked": True}):
        speech.say(f"{ident} is revoked; such calls are asked about again")
