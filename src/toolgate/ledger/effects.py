"""What calls did, as the journal has it: the row that began each and the row that says that it happened.

Nothing here looks at files. Every row is checked against its seal before it is believed, because undo acts on it. Whoever
settles an undo writes `undone` rows beside the row that settles it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolgate.core.change import DIRECTORY
from toolgate.core.errors import Conflict, LedgerBroken, NotFound, TooLarge
from toolgate.core.event import Undone
from toolgate.core.records import dataclass, replace
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.chain import fault_of
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.ledger.ledger import Ledger

UNDO = "ledger.undo"
MAX_CALLS = 10_000
_COURSE = ("started", "committed", "resolved")
_BATCH = 5_000


@dataclass(frozen=True)
class Effect:
    """A call that happened."""

    started: Row
    settled: Row
    whole: Mapping[str, Any] | None = None
    """All of what the first row recorded, where the row has only the beginning and the rest is kept."""

    @property
    def event(self) -> int:
        return self.settled.seq

    @cached_property
    def body(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.whole or json.loads(self.started.body)
        return found

    @cached_property
    def manifest(self) -> list[Mapping[str, Any]]:
        """What it changed: all that it was about to, but for directories that somebody else had made by then."""
        change = list(self.body.get("change", ()))
        already = json.loads(self.settled.body).get("already", ()) if change else ()
        if not already:
            return change
        return [entry for entry in change if entry["after"] != DIRECTORY or entry["path"] not in already]

    @property
    def effectful(self) -> bool:
        return bool(self.body.get("effectful"))

    @property
    def undoes(self) -> tuple[int, ...]:
        return undoes_of(self.body)

    @property
    def who(self) -> str:
        return f"{self.started.tool} by {self.started.persona}"


def undoes_of(body: Mapping[str, Any]) -> tuple[int, ...]:
    """The events that a started call takes back. One number in rows of the first sketches."""
    found = body.get("undoes") or ()
    return (found,) if isinstance(found, int) else tuple(found)


class Effects:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def of(self, ident: int | str) -> Effect:
        """The effect of a call, by its id or by the number of one of its events."""
        call = await self._call(str(ident))
        rows = await self._rows(Filter(call=call))
        started = next((row for row in rows if row.kind == "started"), None)
        settled = next((row for row in rows if _happened(row)), None)
        if started is None or settled is None:
            last = next((row.kind for row in reversed(rows) if row.kind != "expired"), "unknown")
            raise Conflict(f"event {ident} had no effect: its call is {last}", "there is nothing to undo")
        return await self.with_args(Effect(started, settled))

    async def with_args(self, effect: Effect) -> Effect:
        """A tool that is asked to take something back gets all of its arguments, or is not asked."""
        if "cut" not in effect.body or effect.manifest:
            return effect
        with suppress(NotFound):
            return replace(effect, whole=await whole_body(self._ledger.backend, effect.started))
        return effect

    async def first(self, ident: str) -> int:
        """The event with which a call began, given by its id or by any of its events."""
        rows = await self._rows(Filter(call=await self._call(ident)))
        return next((row for row in rows if row.kind == "started"), rows[0]).seq

    async def among(self, wanted: Filter) -> list[Effect]:
        """All calls that had an effect and began among these rows, in the order in which they settled."""
        found, all_of_it = await self.latest(wanted)
        if not all_of_it:
            raise TooLarge(f"these are more than {MAX_CALLS:,} calls", "choose a shorter time")
        return found

    async def latest(self, wanted: Filter) -> tuple[list[Effect], bool]:
        """The same, or the last of them where there are very many; and whether it is all."""
        found: list[Effect] = []
        begun: dict[str, Row] = {}
        after, all_of_it = wanted.after, True
        while page := await self._rows(replace(wanted, kinds=_COURSE, after=after, limit=_BATCH)):
            for row in page:
                if row.kind == "started":
                    if '"effectful":true' in row.body:
                        begun[row.call] = row
                elif row.call in begun and _happened(row):
                    found.append(Effect(begun.pop(row.call), row))
            if len(found) > MAX_CALLS:
                found, all_of_it = found[-MAX_CALLS:], False
            after = page[-1].seq
        return found, all_of_it

    async def undone(self, without: Collection[str] = ()) -> dict[int, int]:
        """Every event that is undone now, and the event of the undo that is in force.

        An undo that was itself undone counts no more; nor do those of the calls `without`, which are about to be.
        """
        rows: list[Row] = []
        while page := await self._rows(
            Filter(tool=UNDO, kinds=("committed", "resolved", "undone"), after=rows[-1].seq if rows else 0, limit=_BATCH)
        ):  # fmt: skip
            rows += page
        settled = {row.call: row.seq for row in reversed(rows) if row.kind != "undone"}
        found: dict[int, int] = {}
        for row in reversed(
            rows
        ):  # the newest first: whether an undo is in force is known before what it undid
            if row.kind == "undone" and row.call not in without:
                by = settled.get(row.call, row.seq)
                if by not in found:
                    found.setdefault(int(json.loads(row.body)["event"]), by)
        return found

    async def _call(self, ident: str) -> str:
        if not (ident.isascii() and ident.isdigit()):
            found = await self._rows(Filter(call=ident, limit=1))
        else:
            seq = int(ident) if len(ident) < 19 else 0
            found = await self._rows(Filter(after=seq - 1, before=seq + 1)) if seq else []
        if not found or not found[0].call:
            what = f"event {ident}" if ident.isdigit() else f"id {ident}"
            raise NotFound(f"there is no call with {what}", "`toolgate ledger tail` shows events")
        return found[0].call

    async def _rows(self, wanted: Filter) -> list[Row]:
        rows = await self._ledger.backend.rows(wanted)
        for row in rows:
            fault = fault_of(row, row.seq, row.prev, self._ledger.keys)
            if fault:
                raise LedgerBroken(
                    f"event {row.seq} cannot be relied on: {fault}", "run `toolgate ledger verify`"
                )
        return rows


def _happened(row: Row) -> bool:
    return row.kind == "committed" or (
        row.kind == "resolved" and json.loads(row.body)["outcome"] == "happened"
    )


def undone_rows(started: Row) -> Iterable[Undone]:
    """One for each event that this call takes back; none if it takes back nothing."""
    for event in undoes_of(json.loads(started.body)):
        yield Undone(
            call=started.call, persona=started.persona, tool=started.tool, conversation=started.conversation,
            ref=f"event:{event}", event=event, by=started.persona,
        )  # fmt: skip
