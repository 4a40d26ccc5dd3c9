"""Commands of the programs: `failures` shows the last that failed, `stats --code` how they went in a period."""

from __future__ import annotations

from typing import Annotated, Any

from toolgate.core.clock import iso
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.ledger.traces import as_execution, days_of
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


async def summary(period: str, persona: str, root: Any) -> None:
    days = days_of(period)
    async with project.record(root) as record:
        found = {"period": period} | await record.traces.summary(days, persona)
    if speech.finish(found):
        return
    speech.say(f"{period} since {found['since']}", "dim")
    if not found["total"]:
        speech.say("no program was run")
        return
    speech.say(
        f"{found['total']} programs: {found['successful']} succeeded ({found['success_rate']:.1%}), "
        f"{found['failed']} failed, {found['avg_ms']:.1f} ms on average"
    )
    for kind in found["errors"]:
        speech.say(speech.safe(f"  {kind['count']} × {kind['category']}", "yellow"))
        for example in kind["examples"]:
            speech.say(speech.safe(f"      {example['error'] or '(nothing on stderr)'}", "dim"))
