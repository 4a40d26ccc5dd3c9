"""`toolgate call`: one call through the gate, with a human at the terminal if there is one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.call import new_id
from toolgate.core.errors import CallError, Code, InvalidArgs
from toolgate.core.result import Meta, Result
from toolgate.facade import Gate
from toolgate.faces.cli import rendering
from toolgate.faces.cli.prompt import Terminal
from toolgate.kits.terminal import arguments, failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.ticker import Ticker
from toolgate.project import config


@dataclass
class Request:
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
    project.run(_call(Request(tool, args, arg or [], persona, root, yes, not no_wait, more)))


async def _call(request: Request) -> int:
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
    if not (project.locate(root) / config.FILE).exists():
        speech.note(f"there is no {config.FILE} here: `toolgate init` sets up a project", "")
    elif result.error and result.error.code is Code.UNKNOWN_TOOL and not project.prepare(root).trusted:
        speech.note(project.FEW_TOOLS, "")


async def _through_gate(request: Request, given: arguments.Given) -> Result:
    with Ticker() as ticker:

        async def make(gate: Gate, wait: bool) -> Result:
            tool = await arguments.known(gate, request.tool, ask=bool(given.written))
            if wait and tool is not None and tool.follow is not None:
                # another call follows: a key keeps the first from being made again if that one is put off
                request.more["key"] = request.more["key"] or new_id("k")
            args, who = given.fit(tool), request.persona or None
            return await gate.call(
                request.tool, args, persona=who, wait=wait, progress=ticker, **request.more
            )

        return await carry(make, request.root, yes=request.yes, wait=request.wait)


Make = Callable[[Gate, bool], Coroutine[Any, Any, Result]]


async def carry(make: Make, root: Path | None, *, yes: bool = False, wait: bool = True) -> Result:
    """Make a call with whoever sits at the terminal to answer it."""
    terminal = Terminal(sys.stdin.isatty() and sys.stderr.isatty(), yes)
    async with project.any_gate(root, [terminal]) as gate:
        terminal.gate = gate
        return await _or_later(make, gate, terminal) if wait else await make(gate, False)


async def _or_later(make: Make, gate: Gate, terminal: Terminal) -> Result:
    """Wait for the call, unless the human puts it off; then its question stays open and it is pending."""
    calling = asyncio.create_task(make(gate, True))
    later = asyncio.create_task(terminal.later.wait())
    try:
        await asyncio.wait((calling, later), return_when=asyncio.FIRST_COMPLETED)
        if calling.done():
            return await calling
    finally:
        for task in (calling, later):
            task.cancel()
        await asyncio.gather(calling, later, return_exceptions=True)
    return await make(gate, False)


def show(result: Result, code: int | None = None) -> int:
    """Print a result; give the exit code."""
    if speech.mode.json:
        speech.write_json(result.as_dict())
    elif result.error is None:
        if not rendering.show(result.tool, result.data):
            speech.show(result.data)
        if result.meta.truncated and not (isinstance(result.data, dict) and result.data.get("truncated")):
            speech.note("the result was shortened to fit the token budget", "yellow")
        if speech.mode.verbose or sys.stderr.isatty():
            _meta(result)
    else:
        rendering.show_failed(result.tool, result.data)
        failures.tell(result.error.code.value, result.error.message, result.error.fix)
    if result.error is None:
        return failures.OK
    return failures.exit_code(result.error.code) if code is None else code


def _meta(result: Result) -> None:
    meta = result.meta
    parts = [meta.call_id, f"event {meta.event_id}", f"{meta.duration_ms:.1f} ms", f"≈{meta.tokens} tokens"]
    parts += ["cached"] if meta.cached else []
    parts += (
        [f"undo with: toolgate undo {meta.event_id}"] if rendering.to_undo(result.tool, result.data) else []
    )
    speech.note(" · ".join(parts))
