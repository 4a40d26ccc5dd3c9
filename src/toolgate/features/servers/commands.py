"""Commands of the MCP servers: `servers` shows them, what is held, and approves it; `import` puts a client's servers
behind the gate, which starts nothing and changes only toolgate.yaml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.core.errors import ConfigError, InvalidArgs, NotAllowed, NotFound, SetupError
from toolgate.features.servers.checks import in_words, state_of
from toolgate.features.servers.config import ServerSpec
from toolgate.features.servers.importing import (
    Imported,
    block,
    converted,
    is_toolgate,
    servers_in,
    with_servers,
)
from toolgate.kits.terminal import client, failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.prompt import forget_typed
from toolgate.kits.terminal.question import preview
from toolgate.kits.terminal.results import show
from toolgate.kits.words import ago
from toolgate.project import config
from toolgate.storage import durable

if TYPE_CHECKING:
    from toolgate.facade import Gate

ACTIONS = ("diff", "approve", "restart", "check")
MOST_FILES = 20
MOST_CHANGED = 40
"""Lines of a change that a summary shows whole."""


@command(epilog="Example: toolgate servers approve weather")
def servers(
    action: Annotated[
        str,
        Argument(metavar="NAME|diff|approve|restart|check", help="A server, or what to do with one."),
    ] = "",
    name: Annotated[str, Argument(metavar="NAME", help="The server.")] = "",
    tool: Annotated[list[str] | None, Option("--tool", help="Approve only this one; repeatable.")] = None,
    yes: Annotated[bool, Option("--yes", help="Approve without being asked.")] = False,
    full: Annotated[bool, Option("--full", help="Show all that its tools say, not a summary.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List the MCP servers, describe one, show what changed in its tools, approve that, or start it again.

    A tool is held until a human has seen what its server says it does, and again whenever that changes.
    """
    if action not in ACTIONS:
        if name:
            raise InvalidArgs(f"{action!r} is not what servers can do", f"use one of: {', '.join(ACTIONS)}")
        project.run(_list(action, root))
        return
    if not name:
        raise InvalidArgs(f"which server? `toolgate servers {action} NAME`", "`toolgate servers` lists them")
    match action:
        case "diff":
            project.run(_diff(name, root))
        case "approve":
            project.run(_approve(name, tool or [], yes, full, root))
        case _:
            project.run(_start(name, action == "restart", root))


def _upstream(gate: Gate) -> Any:
    if gate.upstream is None:
        raise NotFound("toolgate.yaml names no servers", "`toolgate import .mcp.json` adds those of a client")
    return gate.upstream


async def _list(name: str, root: Any) -> None:
    async with project.gate(root) as gate:
        found = gate.servers()
        if name:
            found = [one for one in found if one["name"] == name]
            if not found:
                _upstream(gate).diff(name)  # says which there are
    if speech.finish(found[0] if name else found):
        return
    if name:
        _describe(found[0])
        return
    if not found:
        speech.say("toolgate.yaml names no servers; `toolgate import .mcp.json` adds those of a client")
        return
    rows = [
        [
            speech.safe(one["name"], "bold"), one["transport"], state_of(one), len(one["tools"]),
            speech.safe(len(one["held"]), "bold yellow" if one["held"] else ""),
            one["last_error"] if one["last_error_at"] > one["last_ok_at"] else "",
        ]
        for one in found
    ]  # fmt: skip
    columns = ["server|whole", "by", "state", "tools|right", "held|right", "last error"]
    speech.put(speech.table(columns, rows))


def _describe(one: Mapping[str, Any]) -> None:
    error = f"{one['last_error']} ({ago(one['last_error_at'])})" if one["last_error"] else "none"
    answered = f"{ago(one['last_ok_at'])}, in {one['latency_ms']:g} ms" if one["last_ok_at"] else "never"
    speech.put(
        speech.pairs(
            [
                ("server", one["name"]), (one["transport"], one["target"]), ("state", in_words(one)),
                ("says it is", one["says"].get("server", "")), ("last answer", answered),
                ("a client's model", one["sampling"]), ("last error", error), ("tools", ", ".join(one["tools"]) or "none"),
                *((f"held: {tool}", why) for tool, why in one["held"].items()),
                *((f"refused: {tool}", why) for tool, why in one["refused"].items()),
            ]
        )
    )  # fmt: skip


async def _diff(name: str, root: Any) -> int:
    async with project.gate(root) as gate:
        await _upstream(gate).discover(name)
        found = gate.upstream.diff(name) if gate.upstream else []
    if not speech.finish({"server": name, "held": found}):
        _show(name, found)
    return 1 if found else 0


def _show(name: str, found: list[dict[str, str]], full: bool = True) -> None:
    """All that is said of each tool; else a few lines, and of one that was approved before what has changed."""
    if not found:
        speech.say(f"nothing of {name} is held: its tools are what was approved")
        return
    for one in found:
        speech.say(speech.safe(f"{name}.{one['tool']}", "bold") + speech.safe(f": {one['why']}"))
        if full or (one["approved"] and one["diff"].count("\n") < MOST_CHANGED):
            speech.put(preview(one["diff"]))
        else:
            speech.say(speech.safe(f"  {one['summary']}"))
        if full:
            speech.say("")
    if not full:
        speech.say(
            f"\nthis is a summary: `f` shows all that they say, and so does `toolgate servers approve {name} --full`"
        )


async def _approve(name: str, only: list[str], yes: bool, full: bool, root: Any) -> int:
    async with project.gate(root) as gate:
        upstream = _upstream(gate)
        if upstream.other_files(name):  # it is not started to look at its tools before these are approved
            ended = await _approve_shown(gate, name, only, yes, full, more=True)
            if ended is not None:
                return ended
        ended = await _approve_shown(gate, name, only, yes, full)
    return ended or 0


async def _approve_shown(
    gate: Gate, name: str, only: list[str], yes: bool, full: bool, more: bool = False
) -> int | None:
    """The exit code; None where there is more to look at."""
    upstream = _upstream(gate)
    await upstream.discover(name)
    found = upstream.diff(name)
    if only:
        missing = set(only) - {one["tool"] for one in found}
        if missing:
            raise NotFound(f"{', '.join(sorted(missing))} of {name} is not held", "`toolgate servers diff`")
        found = [one for one in found if one["tool"] in only]
    if not speech.mode.json:
        _show(name, found, full)
        if found and (files := upstream.files(name)):
            listed = ", ".join(files[:MOST_FILES]) + (
                f" and {len(files) - MOST_FILES:,} more" if files[MOST_FILES:] else ""
            )
            speech.say(
                f"{name} runs outside the sandbox, from these files, which are approved as they are now: {listed}"
            )
    if not found:
        speech.finish({"server": name, "approved": []})
        return 0
    if not yes and not _confirmed(name, found, full):
        speech.say(f"nothing of {name} was approved")
        return failures.REFUSED
    shown = {one["tool"]: one["definition"] for one in found}
    result = await gate.approve_server(name, shown, channel=options.channel())
    if more and result.ok:
        await upstream.discover(name)
        if upstream.diff(name):
            return None  # started from other files, it says something else of its tools
    if speech.mode.json or not result.ok:
        return show(result)
    speech.say(f"approved of {name}, as shown: {', '.join(shown)}; a change holds them again")
    return 0


def _confirmed(name: str, found: list[dict[str, str]], full: bool) -> bool:
    """At a terminal a person is asked; a program must say that it means it."""
    count = len(found)
    if options.channel() != "terminal" or speech.mode.json:
        raise NotAllowed(
            f"approving {count} tools of {name} needs a human at a terminal",
            "run it at a terminal, or add `--yes` if you have read what they say",
        )
    forget_typed(sys.stdin.fileno())
    while True:
        sys.stderr.write(f"approve these {count} tools of {name}? [y/N] > ")
        sys.stderr.flush()
        said = sys.stdin.readline().strip().lower()
        if said not in ("f", "full") or full:
            return said in ("y", "yes")
        _show(name, found)


async def _start(name: str, again: bool, root: Any) -> None:
    async with project.gate(root) as gate:
        upstream = _upstream(gate)
        if again:
            await upstream.restart(name)
        took = await upstream.check(name, 60.0)
        status = next(one for one in gate.servers() if one["name"] == name)
    if speech.finish({"server": name, "answers_ms": round(took, 1), "tools": status["tools"]}):
        return
    speech.say(f"{name} answers in {took:.0f} ms")
    if again:
        speech.say("gates that are open start it anew at their next call")


@command(epilog="Example: toolgate import .mcp.json --dry-run")
def import_(
    file: Annotated[Path, Argument(help="The client's file: .mcp.json, claude_desktop_config.json, ...")],
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be added; write nothing.")] = False,
    only: Annotated[list[str] | None, Option("--only", help="Only this server; repeatable.")] = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Add the servers of an MCP client to toolgate.yaml.

    Nothing is started and the client's file stays as it is. Values that look like secrets are not copied: they become
    references to the environment. The tools are held until `toolgate servers approve NAME`.
    """
    place = project.locate(root)
    found = servers_in(file)
    if only:
        missing = sorted(set(only) - set(found))
        if missing:
            raise SetupError(f"{file} has no server {missing[0]!r}", f"it has: {', '.join(found)}")
        found = {name: entry for name, entry in found.items() if name in only}
    itself = [name for name, entry in found.items() if is_toolgate(entry)]
    found = {name: entry for name, entry in found.items() if name not in itself}
    target = place / config.FILE
    current = config.load(place)
    known = _same(current, found)
    made = converted(
        {name: entry for name, entry in found.items() if name not in known}, frozenset(current.servers)
    )
    entries = {one.name: one.entry for one in made}
    if made:
        _add(target, entries, dry_run)
    persona = current.default_persona or next(iter(current.personas), "")
    snippet = client.snippet(place, persona)
    if speech.finish(_as_json(target, made, known, dry_run) | {"left_out": itself, "client": snippet}):
        return
    if itself:
        speech.say(f"left out: {', '.join(itself)}, which is toolgate itself")
    _tell(target, made, known, dry_run, place, persona)


def _same(current: config.Config, found: dict[str, dict[str, Any]]) -> list[str]:
    """Those that are there already, exactly so: importing twice adds nothing."""
    there = {spec.launch for spec in current.servers.values()}
    same = []
    for name, entry in found.items():
        one = converted({name: entry}, frozenset())[0]
        spec = ServerSpec.model_validate(one.entry)
        if spec.launch in there:
            same.append(name)
    return same


def _add(target: Path, entries: dict[str, dict[str, Any]], dry_run: bool) -> None:
    raw = target.read_bytes()
    mark = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    try:
        text = with_servers(raw[len(mark) :].decode(), entries, str(target))
    except ConfigError as error:
        raise SetupError(f"a server does not fit: {error.message}", error.fix) from None
    if not dry_run:
        place = target.resolve()
        durable.replace(place, mark + text.encode(), place.stat().st_mode & 0o777)


def _as_json(target: Path, made: list[Imported], known: list[str], dry_run: bool) -> dict[str, Any]:
    return {
        "file": str(target),
        "written": bool(made) and not dry_run,
        "added": {one.name: one.entry for one in made},
        "already_there": known,
        "notices": [f"{one.name}: {notice}" for one in made for notice in one.notices],
        "variables": sorted({name for one in made for name in one.variables}),
    }


def _tell(
    target: Path, made: list[Imported], known: list[str], dry_run: bool, place: Path, persona: str
) -> None:
    if known:
        speech.say(f"already there: {', '.join(known)}")
    if not made:
        speech.say("nothing to add")
        return
    speech.say(f"{'would add' if dry_run else 'added'} to {target}:", "bold")
    speech.say("\n".join(["servers:", *block({one.name: one.entry for one in made}, 2)]))
    for one in made:
        for notice in one.notices:
            speech.say(f"! {one.name}: {notice}", "yellow")
    if dry_run:
        return
    speech.say("\nnext:", "bold")
    for number, one in enumerate(made):
        told = "" if number else "    starts it, shows what its tools say they do, and asks"
        speech.say(f"  toolgate servers approve {one.name}{told}")
    speech.say("  then give the client toolgate instead of these servers:")
    speech.say(client.told(place, persona))
