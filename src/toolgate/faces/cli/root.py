"""Root command: which command lives where.

A command is loaded when it runs. The overview reads the tables alone, so it loads nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

from toolgate.core.collecting import NoCollection
from toolgate.feature import Command, everything
from toolgate.feature import load as load_place
from toolgate.version import VERSION

PROGRAM = "toolgate"
ABOUT = "The gate between an AI agent and everything it can touch."
EXAMPLE = "Example: toolgate init && toolgate call system.ping"
PANELS = DAILY, HUMANS, RECORD, PROJECT = "Calls", "Humans decide", "The record", "The project"
_HERE = "toolgate.faces.cli"
OWN = (
    Command("up", f"{_HERE}.up:up", "Start the console, the HTTP API and MCP.", DAILY),
    Command("call", f"{_HERE}.call:call", "Call a tool through the gate.", DAILY),
    Command("tools", f"{_HERE}.tools:tools", "List the tools, or describe one.", DAILY),
    Command("mcp", f"{_HERE}.mcp:mcp", "Serve the tools to an MCP client on stdio.", DAILY),
    Command("demo", f"{_HERE}.demo:demo", "A guided tour that leaves nothing behind.", DAILY),
    Command("approvals", f"{_HERE}.approvals:approvals", "See and answer open questions.", HUMANS),
    Command("grants", f"{_HERE}.grants:grants", "See and revoke grants.", HUMANS),
    Command("pause", f"{_HERE}.pause:pause", "Stop a persona, or everything, at once.", HUMANS),
    Command("resume", f"{_HERE}.pause:resume", "Lift a pause.", HUMANS),
    Command("token", f"{_HERE}.up:token", "Print or replace a token.", HUMANS),
    Command("secrets", f"{_HERE}.secrets:app", "Keep secrets that are masked everywhere.", HUMANS),
    Command("scan", f"{_HERE}.scan:scan", "Look for secrets and payloads in files.", RECORD),
    Command("ledger", f"{_HERE}.ledger:app", "Read, verify and export the ledger.", RECORD),
    Command("stats", f"{_HERE}.stats:stats", "Calls per persona and period; programs with --code.", RECORD),
    Command("policy", f"{_HERE}.policy:app", "Check, test, explain and replay the policy.", PROJECT),
    Command("init", f"{_HERE}.init:init", "Set up a project; asks nothing.", PROJECT),
    Command("trust", f"{_HERE}.init:trust", "Vouch for a project's toolgate.yaml.", PROJECT),
    Command("doctor", f"{_HERE}.doctor:doctor", "Check everything and say how to fix it.", PROJECT),
    Command("schema", f"{_HERE}.init:schema", "JSON Schema of toolgate.yaml.", PROJECT),
)
_BROUGHT: list[Command] = []
OPTIONS = (
    ("    --version", "Show the version."),
    ("-v, --verbose", "Say more on stderr."),
    ("    --debug", "Show tracebacks."),
    ("    --install-completion", "Install completion for the current shell."),
    ("    --show-completion", "Show completion for the current shell, to copy it."),
    ("-h, --help", "Show this message and exit."),
)


def commands() -> dict[str, Command]:
    """By name. `diary add` and `diary list` are commands of a group, which has the first word for its name."""
    brought = (each for feature in everything() for each in feature.commands)
    return {each.name: each for each in (*_BROUGHT, *brought, *OWN)}


def _of_the_project() -> list[str]:
    """Commands that the project around brings. Looked for only where nobody else knows the word: it loads plugins."""
    from pathlib import Path

    from toolgate.core.errors import ToolgateError
    from toolgate.kits.terminal.complete import find_root
    from toolgate.project.plugins import brought

    try:
        found = [each for feature in brought(find_root(Path.cwd())) for each in feature.commands]
    except ToolgateError:
        return []  # what is wrong with the project is said by commands that need it
    _BROUGHT.extend(found)
    return [each.name.partition(" ")[0] for each in found]


def names() -> list[str]:
    """What may be the first word."""
    return list(dict.fromkeys(name.partition(" ")[0] for name in commands()))


def load(name: str) -> Any:
    """The real command, or group of them, with everything it imports."""
    from toolgate.kits.terminal.command import CommandGroup, TypedCommand

    table = commands()
    alone: Any = load_place(table[name].runs) if name in table else None
    members = {each: entry for each, entry in table.items() if each.startswith(f"{name} ")}
    if not members:
        return alone if isinstance(alone, TypedCommand | CommandGroup) else TypedCommand(alone, name)
    group = CommandGroup(table[name].help if name in table else f"Commands about {name}.")
    group.alone = alone
    for each, entry in members.items():
        word, found = each.partition(" ")[2], load_place(entry.runs)
        group.commands[word] = found if isinstance(found, TypedCommand) else TypedCommand(found, word)
    return group


def run(words: list[str]) -> None:
    """Read the options before the command, and run it."""
    verbose = debug = False
    rest = list(words)
    while rest and rest[0].startswith("-"):
        match rest.pop(0):
            case "--version":
                sys.stdout.write(f"{PROGRAM} {VERSION}\n")
                return
            case "-v" | "--verbose":
                verbose = True
            case "--debug":
                debug = True
            case "-h" | "--help":
                overview()
                return
            case "--install-completion" | "--show-completion" as asked:
                from toolgate.faces.cli import completion

                completion.install() if asked == "--install-completion" else completion.show()
                return
            case word:
                raise _unknown("option", word)
    if not rest:
        overview()
        raise SystemExit(2)
    if rest[0] not in names() and rest[0] not in _of_the_project():
        raise _unknown("command", rest[0])
    from toolgate.kits.terminal import speech

    speech.mode.reset(verbose=verbose, debug=debug)
    with NoCollection(lasting=True):
        found = load(rest[0])
    found.run(rest[1:], f"{PROGRAM} {rest[0]}")


def overview() -> None:
    from toolgate.kits.terminal import help_pages

    known = commands().values()
    panels = dict.fromkeys((*PANELS, *(each.panel for each in known)))
    sections = [
        (panel, [(each.name, each.help) for each in known if each.panel == panel]) for panel in panels
    ]
    help_pages.show(help_pages.of_root(PROGRAM, ABOUT, [("Options", OPTIONS), *sections], EXAMPLE))


def _unknown(what: str, given: str) -> Exception:
    from toolgate.kits.terminal.command import unknown

    known = names() if what == "command" else [name.split()[-1] for name, _ in OPTIONS]
    return unknown(what, given, known, PROGRAM)
