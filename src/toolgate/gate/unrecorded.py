"""What the journal could not be told: outcomes of calls that ended while the ledger could not be written.

They are kept in memory and written as soon as that is possible: by a task that tries again and again, before the next
call begins, and when the gate closes. A call that the journal believes to run here and that nobody here knows is
settled by what can be proven, else as unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError, Code
from toolgate.core.event import Event, Failed, Resolved
from toolgate.core.records import dataclass
from toolgate.ledger.effects import undone_rows
from toolgate.ledger.ledger import Ledger, View, Work

if TYPE_CHECKING:
    from toolgate.ledger.state import Live
    from toolgate.storage.port import Row

log = logging.getLogger("toolgate.gate")
FIRST, LONGEST = 0.1, 5.0
"""Seconds between two attempts."""
CLOSING = 10.0
MOST_CALLS = 10_000
MOST_BYTES = 32 << 20
BATCH = 256


@dataclass(frozen=True, slots=True)
class Ending:
    """How one call ended, as its row will say it."""

    event: Event
    request: str
    started: Row | None = None
    """Where the call takes others back: that is recorded beside it."""
    size: int = 0


class RecordWork(Work[None]):
    """Write what is still missing. A row that did land, though nobody could say so, is not written twice."""

    def __init__(self, endings: Sequence[Ending]) -> None:
        super().__init__()
        self.endings = endings

    def decide(self, view: View) -> None:
        for ending in self.endings:
            call = ending.event.call
            if call in view.state.live:
                view.emit(ending.event)
            elif call in view.state.doubts and ending.event.kind != "unknown":
                view.emit(late(ending.event, ending.request))
            else:
                continue
            if ending.started is not None:
                for row in undone_rows(ending.started):
                    view.emit(row)


def late(event: Event, request: str) -> Resolved:
    """Somebody took us for dead and called it unknown: what we know."""
    outcome = {"committed": "happened", "failed": "not"}.get(event.kind, "unknown")
    return Resolved(
        call=event.call, persona=event.persona, tool=event.tool, conversation=event.conversation, claim=event.claim,
        digest=request, outcome=outcome, by="owner", channel="gate", reason="it was settled by another process meanwhile",
    )  # fmt: skip


class Unrecorded:
    def __init__(self, ledger: Ledger, me: str) -> None:
        self._ledger, self._me = ledger, me
        self.underway: set[str] = set()
        """Calls in this process, from before they begin until they are settled."""
        self.adopt: Callable[[Live], Awaitable[object]] | None = None
        """Settles a call that the journal believes to run here and that nobody here knows."""
        self._endings: dict[str, Ending] = {}
        self._bytes = 0
        self.pending = False
        """Whether something went wrong since the journal was last known to be right about us."""
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._busy = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._endings)

    def keep(self, event: Event, request: str, started: Row | None = None) -> None:
        """Remember how a call ended. Beyond the bound it is forgotten, and will be settled by what can be proven."""
        self.pending = True
        size = len(event.text())
        if len(self._endings) < MOST_CALLS and self._bytes + size <= MOST_BYTES:
            self._endings[event.call] = Ending(event, request, started, size)
            self._bytes += size
        else:
            log.warning("the outcome of %s cannot be kept until the ledger is back", event.call)
        self._try_later()

    def never_ran(self, request: str, **of: Any) -> None:
        """The row that begins a call may have landed all the same; if it did, this is how the call ended."""
        said = "the ledger could not confirm that it began, so it was not run"
        self.keep(Failed(**of, code=Code.UNAVAILABLE.value, error=said), request)

    async def write(self) -> bool:
        """Record what is kept; whether the journal is right about us now."""
        if not self.pending:
            return True
        async with self._busy:
            try:
                while self._endings:
                    await self._write_some(list(self._endings.values())[:BATCH])
                await self._adopt_strangers()
            except CallError as error:
                log.debug("outcomes still cannot be recorded: %s", error.message)
                return False
            self.pending = bool(self._endings)
            return not self.pending

    async def _write_some(self, endings: Sequence[Ending]) -> None:
        work = RecordWork(endings)
        await self._ledger.do(work)
        for ending in endings:
            if self._endings.pop(ending.event.call, None) is not None:
                self._bytes -= ending.size
        if work.rows:
            log.warning("recorded after all how %d calls ended", len(endings))

    async def _adopt_strangers(self) -> None:
        if self.adopt is None:
            return
        for item in await self.strangers():
            log.warning("%s is said to run here, and does not: it is settled", item.row.call)
            await self.adopt(item)

    async def strangers(self) -> list[Live]:
        """Calls that the journal believes to run here, and do not."""
        return await self._ledger.look(lambda state, now: self.unknown_among(state.live.values()))

    def unknown_among(self, live: Collection[Live]) -> list[Live]:
        return [item for item in live if item.owner == self._me and not self.knows(item.row.call)]

    def knows(self, call: str) -> bool:
        return call in self.underway or call in self._endings

    def _try_later(self) -> None:
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._again_and_again(), name="toolgate-unrecorded")

    async def _again_and_again(self) -> None:
        pause = FIRST
        while True:
            await asyncio.sleep(pause)
            if await self.write():
                return
            pause = min(2 * pause, LONGEST)

    async def close(self) -> None:
        """Once more, and then say what is left: whoever opens the ledger next settles it."""
        self._closed = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSING):
                await self.write()
        except TimeoutError:
            pass
        if self._endings:
            left = ", ".join(list(self._endings)[:10])
            log.error("how %d calls ended could not be recorded: %s", len(self._endings), left)
