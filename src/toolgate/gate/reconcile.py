"""Did it happen? Asked after a time-out, a cancellation or the death of a call's owner."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Context
from toolgate.core.errors import CallError, NotFound
from toolgate.core.event import Committed, Failed, Unknown
from toolgate.gate.deadline import Deadline
from toolgate.gate.flow import arguments
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.ledger import View, Work
from toolgate.ledger.undone import undone_rows
from toolgate.secrets.mask import MASK

if TYPE_CHECKING:
    from toolgate.core.tool import Arguments, Tool
    from toolgate.gate.flow import Services
    from toolgate.ledger.state import Live
    from toolgate.storage.port import Row

log = logging.getLogger("toolgate.gate")

# Looking has its own time: a tool that is stopped after a moment may need longer to find out what it did.
SECONDS_TO_LOOK = 10.0


async def what_happened(
    services: Services, tool: Tool | None, started: Row, args: Arguments | None = None
) -> tuple[str, str]:
    """`happened`, `not` or `unknown`, and how we know. The journal's arguments have no secrets; `args` do."""
    body = json.loads(started.body)
    try:
        if body.get("change") and services.files is not None:
            return await services.files.settle(body["change"])
        if tool is not None and tool.reconcile is not None:
            recorded = {} if args is not None else await _recorded_args(services, started)
            if recorded is None:
                return "unknown", "its arguments are no longer kept, so the tool cannot be asked"
            if MASK in str(recorded):
                return "unknown", "its secret arguments are not kept, so the tool cannot be asked"
            return await _ask_tool(tool, args or tool.validate(recorded), started)
    except Exception as error:
        log.exception("could not reconcile %s", started.call)
        return "unknown", f"reconciliation failed: {error}"
    if not body.get("effectful"):
        return "not", "it had no effects to lose"
    return "unknown", "the tool cannot tell"


async def _recorded_args(services: Services, started: Row) -> dict[str, Any] | None:
    try:
        return dict((await whole_body(services.ledger.backend, started))["args"])
    except NotFound:  # too long for the row, and too old
        return None


async def _ask_tool(tool: Tool, args: Arguments, started: Row) -> tuple[str, str]:
    assert tool.reconcile is not None
    named: dict[str, object] = arguments(args)
    wanted = tool.wants.get(tool.reconcile)
    if wanted:
        named[wanted] = Context(started.call, started.persona, started.tool, started.conversation)
    waits = inspect.iscoroutinefunction(tool.reconcile)
    with Deadline(max(tool.timeout, SECONDS_TO_LOOK)):
        answer = await (tool.reconcile(**named) if waits else asyncio.to_thread(tool.reconcile, **named))
    how = f"{tool.name} was asked"
    if isinstance(answer, tuple):  # a tool may say how it knows
        answer, how = answer
    words = {True: "happened", False: "not", None: "unknown"}
    outcome = words[answer] if isinstance(answer, bool) or answer is None else str(answer)
    return (outcome if outcome in words.values() else "unknown"), how


async def reconcile_dead(services: Services) -> list[Row]:
    """Settle the started calls of owners that are gone. Living owners are left alone."""
    live = await services.ledger.look(lambda state, now: list(state.live.values()))
    owners = {item.owner for item in live} - {services.owners.me}
    dead = {owner for owner in owners if await services.owners.dead(owner)}
    settled: list[Row] = []
    for item in live:
        if item.owner in dead:
            settled += await settle_gone(services, item)
    return settled


async def settle_gone(services: Services, item: Live) -> list[Row]:
    """Of an owner that is dead, or lives and does not know it."""
    row = item.row
    here = item.owner == services.owners.me
    try:
        tool: Tool | None = services.registry.resolve(row.tool)
    except CallError:
        tool = None
    known = json.loads(row.body)
    if tool is None and known.get("effectful") and not known.get("change") and not here:
        return []  # another process may have the tool and can ask it; until then nothing is claimed about it
    outcome, how = await what_happened(services, tool, row)

    def decide(view: View) -> None:
        if row.call not in view.state.live:
            return  # another process was faster
        common: dict[str, Any] = {
            "call": row.call, "persona": row.persona, "tool": row.tool, "conversation": row.conversation,
            "claim": row.claim, "reconciled": how,
        }  # fmt: skip
        why = (
            "the process that ran it no longer knows of it"
            if here
            else "the process that ran it ended before it was settled"
        )
        gone = f"{why}; {how}"
        if outcome == "happened":
            view.emit(
                Committed(
                    **common,
                    summary="settled afterwards" if here else "settled after a crash",
                    artifacts=known.get("change", []),
                )
            )
            for event in undone_rows(row):
                view.emit(event)
        elif outcome == "not":
            view.emit(Failed(**common, code="failed", error=gone))
        else:
            view.emit(Unknown(**common, code="unknown_outcome", error=gone))

    work = Work(decide)
    await services.ledger.do(work)
    return work.rows
