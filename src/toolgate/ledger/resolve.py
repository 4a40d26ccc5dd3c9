"""A human settles what could not be proven."""

from __future__ import annotations

import json
from collections.abc import Callable

from toolgate.core.errors import Conflict, InvalidArgs, NotFound
from toolgate.core.event import Resolved, Unknown
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.ledger.state import Live, request_of
from toolgate.ledger.undone import undone_rows
from toolgate.storage.port import Filter, Row

_COURSE = ("started", "committed", "failed", "unknown", "resolved")
"""How a call went; its questions may expire later, which says nothing about it."""


StillRuns = Callable[[Live, int], str]
"""Why a call must be taken for running at this moment, as what to do about it; empty if it runs no more."""


def _alive(item: Live, now: int) -> str:
    return "wait until it has ended, or until its process is gone"


class ResolveWork(Work[None]):
    """Made from the call's own rows; checked again in the transaction, because another may resolve it too."""

    def __init__(self, started: Row, outcome: str, by: str, reason: str, still_runs: StillRuns) -> None:
        super().__init__()
        self._still_runs = still_runs
        self._started = started
        self._outcome, self._by, self._reason = outcome, by, reason

    @classmethod
    async def make(
        cls, ledger: Ledger, ident: str, outcome: str, by: str, reason: str, still_runs: StillRuns = _alive
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
