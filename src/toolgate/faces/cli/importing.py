"""`toolgate import FILE`: an MCP client's servers go behind the gate. Starts nothing, changes only toolgate.yaml."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.errors import ConfigError, SetupError
from toolgate.features.servers.clients import servers_in
from toolgate.features.servers.config import ServerSpec
from toolgate.features.servers.importing import Imported, converted, is_toolgate
from toolgate.features.servers.yamledit import block, with_servers
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.project import config
from toolgate.storage import durable


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
    if speech.finish(_as_json(target, made, known, dry_run, place) | {"left_out": itself}):
        return
    if itself:
        speech.say(f"left out: {', '.join(itself)}, which is toolgate itself")
    _tell(target, made, known, dry_run, place)


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


def _as_json(
    target: Path, made: list[Imported], known: list[str], dry_run: bool, place: Path
) -> dict[str, Any]:
    return {
        "file": str(target),
        "written": bool(made) and not dry_run,
        "added": {one.name: one.entry for one in made},
        "already_there": known,
        "notices": [f"{one.name}: {notice}" for one in made for notice in one.notices],
        "variables": sorted({name for one in made for name in one.variables}),
        "client": snippet(place),
    }


def _tell(target: Path, made: list[Imported], known: list[str], dry_run: bool, place: Path) -> None:
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
    speech.say(
        f"  toolgate servers approve {made[0].name}    starts it, shows what its tools say they do, and asks"
    )
    speech.say("  then give the client toolgate instead of these servers:")
    speech.say(jsonlib.dumps(snippet(place), indent=2))


def snippet(place: Path) -> dict[str, Any]:
    """What goes into the client's file, so that its calls pass the gate."""
    return {"mcpServers": {"toolgate": {"command": "toolgate", "args": ["mcp", "--root", str(place)]}}}
