"""`toolgate call`: one call through the gate, with a human at the terminal if there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.call import new_id
from toolgate.core.errors import CallError, Code, InvalidArgs
from toolgate.core.records import dataclass, field
from toolgate.core.result import Meta, Result
from toolgate.facade import Gate
from toolgate.kits.terminal import arguments, failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.progress import Ticker
from toolgate.kits.terminal.prompt import carry
from toolgate.kits.terminal.results import show
from toolgate.project import trust


@dataclass
class CallRequest:
    tool: str
    args: str
    named: list[str]
    persona: str
    root: Path | None
    yes: bool
    wait: bool
    more: dict[str, Any] = field(default_factory=dict)


@command(epilog="""Example: toolgate call fs.write '{"path": "a.md", "content": "hi"}' --persona builder""")
def call(
    tool: options.ToolName,
    args: Annotated[str, Argument(metavar="JSON", help="Arguments: JSON, @file, or - for stdin.")] = "",
    arg: Annotated[
        list[str] | None,
        Option(
            "--arg",
            "-a",
            help="One argument: name=value, or name=@file for a file's text (name=@@text for @text). Repeatable.",
        ),
    ] = None,
    persona: options.Persona = "",
    root: options.Root = None,
    json: options.Json = False,
    yes: Annotated[bool, Option("--yes", help="Approve it at this terminal, if it asks.")] = False,
    no_wait: Annotated[
        bool, Option("--no-wait", help="Do not wait for an answer: give back pending.")
    ] = False,
    key: Annotated[str, Option("--key", help="A repeat with the same key gives the stored result.")] = "",
    reason: options.Reason = "",
    conversation: Annotated[str, Option("--conversation", help="Which conversation it is part of.")] = "",
) -> None:
    """Call a tool through the gate.

    If policy asks, it waits for the answer until the question expires.
    At a terminal the answer is given here. Without one, stderr says at once
    which question waits, until when, and how to answer it from elsewhere.

    Exit codes: 0 it worked, 1 it failed, 2 the call was wrong, 3 it was refused or is not approved yet.
    """
    more = {"key": key or None, "reason": reason, "conversation": conversation}
    project.run(_call(CallRequest(tool, args, arg or [], persona, root, yes, not no_wait, more)))


async def _call(request: CallRequest) -> int:
    try:
        if request.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise InvalidArgs(
                "--yes records an approval given at a terminal, and there is none",
                "run it in a terminal, or answer with `toolgate approvals ID approve`",
            )
        given = arguments.read(request.args, request.named)
    except CallError as error:
        return show(Result.refused(request.tool, error, Meta()), failures.USAGE)
    try:
        result = await _through_gate(request, given)
    except CallError as error:  # the gate did not open
        return show(Result.refused(request.tool, error, Meta()))
    code = show(result)
    if not speech.mode.json:
        _note_setup(request.root, result)
    return code


def _note_setup(root: Path | None, result: Result) -> None:
    if not (project.locate(root) / trust.FILE).exists():
        speech.note(f"there is no {trust.FILE} here: `toolgate init` sets up a project", "")
    elif result.error and result.error.code is Code.UNKNOWN_TOOL and not project.prepare(root).trusted:
        speech.note(project.FEW_TOOLS, "")


async def _through_gate(request: CallRequest, given: arguments.GivenArguments) -> Result:
    with Ticker() as ticker:

        async def make(gate: Gate, wait: bool) -> Result:
            tool = await gate.find_tool(request.tool, ask_servers=bool(given.written))
            if wait and tool is not None and tool.follow is not None:
                # another call follows: a key keeps the first from being made again if that one is put off
                request.more["key"] = request.more["key"] or new_id("k")
            args, who = given.fit(tool), request.persona or None
            return await gate.call(
                request.tool, args, persona=who, wait=wait, progress=ticker, **request.more
            )

        return await carry(make, request.root, yes=request.yes, wait=request.wait)
