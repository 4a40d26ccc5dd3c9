"""Reconciliation: did it happen? Asked after a time-out, a cancellation or the death of a call's owner.

Of calls that cannot be running any more although their owner lives, and of those about which nothing could be proven, a
human says how they ended.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND, iso
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotFound
from toolgate.core.event import Committed, Failed, Resolved, Unknown
from toolgate.gate.deadline import Deadline
from toolgate.gate.flow import arguments
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.effects import undone_rows
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.ledger.state import Live, request_of
from toolgate.secrets.mask import MASK
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.core.tool import Arguments, Tool
    from toolgate.gate.flow import Services

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


SLACK = 60.0
"""Seconds beyond a call's time in which its process finds out what happened, and says so."""


def ends_at(services: Services, item: Live) -> int:
    """When it has ended at the latest: its time twice, because finding out what happened may take as long again."""
    try:
        seconds = services.timeouts.of(services.registry.resolve(item.row.tool))
    except CallError:  # another process has the tool
        seconds = services.timeouts.most
    return item.row.at + round((2 * seconds + SLACK) * SECOND)


def still_runs(services: Services, item: Live, now: int) -> str:
    """Why it must be taken for running, as the fix of an error; empty if it runs no more."""
    if item.owner == services.owners.me:
        return "wait until it has ended" if services.unrecorded.knows(item.row.call) else ""
    until = ends_at(services, item)
    if until <= now:
        return ""
    return f"wait until it has ended, or until its process is gone; at the latest at {iso(until)} it can be resolved"


_COURSE = ("started", "committed", "failed", "unknown", "resolved")
"""How a call went; its questions may expire later, which says nothing about it."""

StillRuns = Callable[[Live, int], str]
"""Why a call must be taken for running at this moment, as what to do about it; empty if it runs no more."""


class ResolveWork(Work[None]):
    """Made from the call's own rows; checked again in the transaction, because another may resolve it too."""

    def __init__(self, started: Row, outcome: str, by: str, reason: str, still_runs: StillRuns) -> None:
        super().__init__()
        self._still_runs = still_runs
        self._started = started
        self._outcome, self._by, self._reason = outcome, by, reason

    @classmethod
    async def make(
        cls, ledger: Ledger, ident: str, outcome: str, by: str, reason: str, still_runs: StillRuns
    ) -> ResolveWork:
        if outcome not in ("happened", "not"):
            raise InvalidArgs(f"{outcome!r} is not an outcome", "say `happened` or `not`")
        call = await _call_of(ledger, ident)
        rows = await ledger.backend.rows(Filter(call=call, kinds=_COURSE))
        started = next((row for row in rows if row.kind == "started"), None)
        if started is None:
            raise NotFound(
                f"{ident} never started, so there is nothing to resolve", "`toolgate ledger tail` shows calls"
            )
        last = rows[-1]
        if last.kind not in ("unknown", "started"):
            raise Conflict(f"{call} is {last.kind}, not unknown", "only unknown calls can be resolved")
        return cls(started, outcome, by, reason, still_runs)

    def decide(self, view: View) -> None:
        row = self._started
        item = view.state.live.get(row.call)
        if item is not None:
            wait = self._still_runs(item, view.now)
            if wait:
                raise Conflict(f"{row.call} is still running", wait)
            self._give_up(view)
        elif row.call not in view.state.doubts:
            raise Conflict(f"{row.call} is not unknown any more", "somebody resolved it meanwhile")
        digest = request_of(json.loads(row.body))
        view.emit(
            Resolved(
                call=row.call, persona=row.persona, tool=row.tool, conversation=row.conversation,
                claim=row.claim, outcome=self._outcome, by=self._by, channel="ledger", reason=self._reason,
                digest=digest,
            )
        )  # fmt: skip
        if self._outcome == "happened":
            for event in undone_rows(row):
                view.emit(event)

    def _give_up(self, view: View) -> None:
        """Its owner lives and runs it no more: unknown first, as for every call that nobody can answer for."""
        row = self._started
        view.emit(
            Unknown(
                call=row.call, persona=row.persona, tool=row.tool, conversation=row.conversation, claim=row.claim,
                code="unknown_outcome", error="its process lives and no longer runs it",
            )
        )  # fmt: skip


async def _call_of(ledger: Ledger, ident: str) -> str:
    """A call's id, or the number of one of its events."""
    if not ident.isdigit():
        return ident
    rows = await ledger.backend.rows(Filter(after=int(ident) - 1, before=int(ident) + 1))
    if not rows or not rows[0].call:
        raise NotFound(f"there is no event {ident} of a call", "`toolgate ledger tail` shows events")
    return rows[0].call
