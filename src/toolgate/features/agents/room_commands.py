"""`toolgate room` and `toolgate rooms`: several personas look into one thing, seen from a terminal."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.agents import room as rules
from toolgate.agents.budget import RunLimits
from toolgate.consent.desk import whoami
from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs
from toolgate.core.names import HUMAN
from toolgate.features.agents import replaying
from toolgate.features.agents.attending import WAITING, Plain, Usd, attended, opened, until_later
from toolgate.features.agents.view import RunView
from toolgate.kits.terminal import failures, options, project, results, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option, command
from toolgate.kits.words import ago

if TYPE_CHECKING:
    from toolgate.features.agents.rooms import AgentRoom
    from toolgate.features.agents.runs import Runs

app = CommandGroup("Rooms of personas.")
Topic = Annotated[str, Argument(metavar="TOPIC", help="What they shall look into, such as a bug report.")]
Members = Annotated[str, Option("--members", help="Personas, with commas between them.")]
Check = Annotated[
    str, Option("--check", help="The call that decides, as JSON: tool, args, persona; or @file.")
]
Rounds = Annotated[int, Option("--rounds", help="How often everybody may speak.", min=1, max=50)]
Ident = Annotated[str, Argument(metavar="ROOM", help="The room: room_…")]
_GOOD = frozenset({"verified", "unverified", "disagreement"})


@command(
    epilog='Example: toolgate room "discounts are ten times too high" --members reader,tester --check @check.json'
)
def room(
    topic: Topic,
    members: Members,
    check: Check = "",
    rounds: Rounds = 4,
    usd: Usd = 0.0,
    plain: Plain = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Have several personas look into something together, until the check passes or nobody has anything new."""
    names = [name.strip() for name in members.split(",") if name.strip()]
    project.run(_room(topic, names, _check(check), rounds, RunLimits(usd=usd), plain, root))


@app.without_command(epilog="Example: toolgate rooms")
def rooms(root: options.Root = None, json: options.Json = False) -> None:
    """Rooms of personas: without a subcommand, the newest."""
    project.run(_list(root))


@app.command(epilog="Example: toolgate rooms show room_0192")
def show(
    ident: Ident,
    replay: Annotated[bool, Option("--replay", help="From the ledger alone.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """One room: its board and everything that was said, with the events that show it."""
    project.run(_show(ident, replay, root))


@app.command(epilog="Example: toolgate rooms resume room_0192")
def resume(ident: Ident, plain: Plain = False, root: options.Root = None, json: options.Json = False) -> None:
    """Go on with a room that waits, or whose process is gone."""
    project.run(_resume(ident, plain, root))


@app.command(epilog='Example: toolgate rooms say room_0192 "look at the rounding"')
def say(
    ident: Ident,
    text: Annotated[str, Argument(metavar="TEXT", help="What you say.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Say something in a room, as the human."""
    project.run(_say(ident, text, root))


@app.command(epilog="Example: toolgate rooms judge room_0192 right")
def judge(
    ident: Ident,
    verdict: Annotated[str, Argument(metavar="right|wrong", help="Whether the diagnosis is right.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Say whether a room's diagnosis was right."""
    project.run(_judge(ident, verdict, root))


def _check(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        found = jsons.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        raise InvalidArgs(
            f"the check cannot be read: {error}", 'write {"tool": …, "args": {…}, "persona": …}'
        ) from None
    if not isinstance(found, dict):
        raise InvalidArgs("the check is no object", 'write {"tool": …, "args": {…}, "persona": …}')
    return found


async def _room(
    topic: str, names: list[str], check: dict[str, Any] | None, rounds: int, limits: RunLimits, plain: bool,
    root: Path | None,
) -> int:  # fmt: skip
    async with attended(root) as (agents, terminal):
        made = await agents.rooms.open(topic, names, check=check, rounds=rounds, limits=limits)
        view = RunView(plain)
        work = agents.rooms.drive(made, view, attended=terminal.interactive)
        return await _finish(
            agents,
            await until_later(work, terminal, f"rooms resume {made.id}") or await agents.rooms.get(made.id),
            view,
        )


async def _resume(ident: str, plain: bool, root: Path | None) -> int:
    async with attended(root) as (agents, terminal):
        view = RunView(plain)
        work = agents.rooms.drive(await agents.rooms.get(ident), view, attended=terminal.interactive)
        done = await until_later(work, terminal, f"rooms resume {ident}") or await agents.rooms.get(ident)
        return await _finish(agents, done, view)


async def _finish(agents: Runs, room: AgentRoom, view: RunView) -> int:
    posts = await agents.rooms.posts(room.id)
    board = [one.as_dict() for one in rules.board(posts)]
    good = room.state in _GOOD
    if not speech.finish(room.shown() | {"board": board, "posts": posts}, ok=good or room.state == "waiting"):
        _draw(board, posts)
        speech.say(f"{room.state}: {room.settings.get('reason') or room.settings.get('waiting', '')}")
        speech.note(f"toolgate rooms {'resume' if room.state == 'open' else 'show'} {room.id}")
    return failures.OK if good else WAITING if room.state == "waiting" else failures.FAILED


def _draw(board: list[dict[str, Any]], posts: list[dict[str, Any]]) -> None:
    if board:
        rows = [[one["id"], f"{one['weight']:+d}", one["by"], one["text"]] for one in board]
        speech.put(speech.table(["", "weight|right", "by", "hypothesis"], rows))
    for post in posts:
        speech.say(f"{post['persona']} ({post['kind']}): {post.get('text', '')}")
        for claim in post.get("claims", ()):
            shown = (
                f"event {claim['event']}" if claim.get("event") else f"not shown: {claim.get('missing', '')}"
            )
            speech.say(f"  {claim['file']}:{claim['line']} {claim.get('text', '')} [{shown}]")


async def _list(root: Path | None) -> None:
    async with opened(root) as agents:
        found = await agents.rooms.newest()
    if speech.finish([one.shown() for one in found]):
        return
    if not found:
        speech.say('there is no room yet: toolgate room "what is wrong with …" --members reader,tester')
        return
    rows = [[one.id, ago(one.created_at / SECOND), ", ".join(one.members), one.state, one.verdict, one.topic] for one in found]  # fmt: skip
    speech.put(speech.table(["room|whole", "when", "members", "state", "verdict", "topic|cut"], rows))


async def _show(ident: str, replay: bool, root: Path | None) -> None:
    async with opened(root) as agents:
        found = await agents.rooms.get(ident)
        posts = await (replaying.replay(agents.gate, found) if replay else agents.rooms.posts(ident))
    board = [one.as_dict() for one in rules.board(posts)]
    if speech.finish(found.shown() | {"board": board, "posts": posts}):
        return
    speech.put(speech.pairs((name, value) for name, value in found.shown().items() if value))
    _draw(board, posts)


async def _say(ident: str, text: str, root: Path | None) -> int:
    async with project.gate(root) as gate:
        return results.show(await gate.call("room.post", {"text": text, "room": ident}, persona=HUMAN))


async def _judge(ident: str, verdict: str, root: Path | None) -> None:
    async with opened(root) as agents:
        done = await agents.rooms.judge(ident, verdict, whoami())
    if not speech.finish(done.shown()):
        speech.say(f"{done.id} is {done.state}, and {done.verdict}")
