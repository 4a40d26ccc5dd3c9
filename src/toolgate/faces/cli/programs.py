"""`toolgate failures`: the last programs that failed, with their code and what went wrong."""

from __future__ import annotations

from typing import Annotated, Any

from toolgate.core.clock import iso
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.ledger.traces import as_execution
from toolgate.storage.executions import ExecutionRow

CODE, ERROR = 500, 300


@command(epilog="Example: toolgate failures 3 --conversation talk-17")
def failures(
    number: Annotated[int, Argument(metavar="N", help="How many.", min=1, max=1000)] = 5,
    conversation: Annotated[str, Option("--conversation", help="Only of this conversation.")] = "",
    persona: options.Persona = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show the last programs that failed, newest first; --json has all of code and output."""
    project.run(_failures(number, conversation, persona, root))


async def _failures(number: int, conversation: str, persona: str, root: Any) -> None:
    async with project.record(root) as record:
        rows = await record.traces.failures(conversation or None, number, persona)
    if speech.finish([as_execution(row) for row in rows]):
        return
    if not rows:
        speech.say("no program failed")
    for row in rows:
        _show(row)


def _show(row: ExecutionRow) -> None:
    ended = f"limit {row.limit_hit}" if row.limit_hit else f"exit {row.exit_code}"
    head = f"  {row.tool} by {row.persona}, {iso(row.created_at)}, {ended}, {row.duration_ms:.0f} ms"
    speech.say(
        speech.safe(row.id, "bold") + speech.safe(f"  {row.error_category}", "yellow") + speech.safe(head)
    )
    _block("code", _head(row.code, CODE))
    _block("error", _tail(row.stderr.strip(), ERROR))


def _block(title: str, text: str) -> None:
    speech.say(speech.safe(f"  {title}:", "dim"))
    for line in (text or "(none)").split("\n"):
        speech.say(speech.safe(f"    {line}"))


def _head(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _tail(text: str, most: int) -> str:
    """An error is told at the end."""
    return text if len(text) <= most else "…" + text[-most:]
