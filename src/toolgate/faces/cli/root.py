"""The root command: which command lives where.

Commands are loaded when they are used. Help and completion read the table below, so they stay quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from toolgate.version import VERSION

DAILY, HUMANS, RECORD, PROJECT = "Calls", "Humans decide", "The record", "The project"


class Entry(NamedTuple):
    module: str
    help: str
    panel: str


COMMANDS = {
    "up": Entry("up", "Start the console, the HTTP API and MCP.", DAILY),
    "call": Entry("call", "Call a tool through the gate.", DAILY),
    "tools": Entry("tools", "List the tools, or describe one.", DAILY),
    "mcp": Entry("mcp", "Serve the tools to an MCP client on stdio.", DAILY),
    "demo": Entry("demo", "A guided tour that leaves nothing behind.", DAILY),
    "approvals": Entry("approvals", "See and answer open questions.", HUMANS),
    "grants": Entry("grants", "See and revoke grants.", HUMANS),
    "pause": Entry("pause", "Stop a persona, or everything, at once.", HUMANS),
    "resume": Entry("pause", "Lift a pause.", HUMANS),
    "jobs": Entry("jobs", "Long work and schedules: list, submit, cancel, run.", HUMANS),
    "token": Entry("token", "Print or replace a token.", HUMANS),
    "secrets": Entry("secrets", "Keep secrets that are masked everywhere.", HUMANS),
    "undo": Entry("undo", "Take back what calls did.", HUMANS),
    "scan": Entry("scan", "Look for secrets and payloads in files.", RECORD),
    "ledger": Entry("ledger", "Read, verify and export the ledger.", RECORD),
    "artifacts": Entry("artifacts", "List the files that calls changed.", RECORD),
    "stats": Entry("stats", "Calls per persona and period; programs with --code.", RECORD),
    "failures": Entry("programs", "The last programs that failed, with code and error.", RECORD),
    "policy": Entry("policy", "Check, test, explain and replay the policy.", PROJECT),
    "init": Entry("init", "Set up a project; asks nothing.", PROJECT),
    "trust": Entry("trust", "Vouch for a project's toolgate.yaml.", PROJECT),
    "import": Entry("importing", "Put an MCP client's servers behind the gate.", PROJECT),
    "servers": Entry("servers", "MCP servers behind the gate: health, held tools, approval.", PROJECT),
    "doctor": Entry("doctor", "Check everything and say how to fix it.", PROJECT),
    "schema": Entry("schema", "JSON Schema of toolgate.yaml.", PROJECT),
}


def load(name: str) -> Any:
    """The real command, with everything it imports."""
    module = import_module(f"toolgate.faces.cli.{COMMANDS[name].module}")
    found = typer.main.get_command(getattr(module, f"{name}_app", None) or module.app)
    found.name = name
    for each in (found, *getattr(found, "commands", {}).values()):
        _without_types_of_flags(each)
    return found


def _without_types_of_flags(command: Any) -> None:
    """A flag takes no value: `--yes <bool>`, as newer versions of Typer say, would ask for one."""
    for option in command.get_params(typer.Context(command, help_option_names=["-h", "--help"])):
        if getattr(option, "is_flag", False):
            option.metavar = ""


class Lazy(TyperGroup):
    """Shows commands from the table and loads only the one that runs."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        return entry and TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(name or ""), rest


app = typer.Typer(
    cls=Lazy,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: toolgate init && toolgate call system.ping",
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"toolgate {VERSION}\n")
        raise typer.Exit


@app.callback(help="The gate between an AI agent and everything it can touch.")
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    from toolgate.faces.cli import logging, speech

    speech.mode.reset(verbose=verbose, debug=debug)
    logging.setup(verbose, debug)


def command() -> Any:
    found = typer.main.get_command(app)
    _without_types_of_flags(found)
    return found
