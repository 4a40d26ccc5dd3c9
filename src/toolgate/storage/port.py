"""What every database offers, as questions and answers.

The ledger writes a transaction once, as a generator that is given the head, yields the questions below and is sent
the answers (no I/O of its own). Each backend only locks the head and drives that generator inside one of its
transactions: SQLite on its writer thread, PostgreSQL on a connection, memory at once. So the logic exists once, and dialects hold only
what really differs.

asyncio is imported where something waits: a command that writes one row needs no event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    import asyncio

    from toolgate.storage.executions import Counted, ExecutionRow, Executions, Keep
    from toolgate.storage.schema import AttachedBytes, Attachment, Grown


class Row(NamedTuple):
    """One journal row, every column of it under the chain."""

    seq: int
    at: int
    kind: str
    call: str
    persona: str
    tool: str
    conversation: str
    ref: str
    claim: str
    key: int
    body: str
    prev: str
    hash: str
    mac: str


class Head(NamedTuple):
    """Where the journal ends. Changes in the same transaction as the rows."""

    seq: int
    at: int
    key: int
    hash: str
    mac: str
    live: str = ""
    """The numbers of the events that started the calls which are running, in order, with commas."""
    questions: str = ""
    """The event's number again, how many questions stand, and what they add up to (ledger/chain.py)."""
    now: int = 0
    """The database's own clock, where it has one that all hosts share."""


class Sum(NamedTuple):
    """What a whole block of events comes to: a cache, under no chain, made again where it is missing."""

    number: int
    hash: str
    """Of the block's last event: a journal that was replaced has other sums."""
    body: str


FREE = 4096
"""Characters of a row's body that count for no limit of bytes: as many rows of that size may be as calls may."""
CUT = '"cut":{"bytes":'
"""How the body of a row begins to say that it holds only the beginning of what was recorded."""


KEPT = '"kept":{"bytes":'
"""How it begins to say that the call left bytes elsewhere that stay."""


def is_heavy(body: str) -> bool:
    return len(body) > FREE or CUT in body or KEPT in body


Tables = Mapping[str, Mapping[Any, tuple[Any, ...]]]
"""Projections: table → key → row. The key is the row's first column."""


class RowsAfter(NamedTuple):
    """Rows another process has written meanwhile; answered with a list of Row."""

    seq: int


class RowsOf(NamedTuple):
    """All rows of these questions and grants; answered with a list of Row, in order."""

    refs: tuple[str, ...]


class LoadTables(NamedTuple):
    """These projections, of those that are kept in memory; answered with Tables."""

    names: tuple[str, ...]


class Recent(NamedTuple):
    """(at, persona, tool, body) of calls started since; answered in order. Without `bodies` the last is empty."""

    since: int
    bodies: bool = False


class Heavy(NamedTuple):
    """(at, persona, body) of the long rows since then, in order: what `limits.journal_bytes` counts."""

    since: int


class ClaimsOf(NamedTuple):
    """The rows that claim these idempotency scopes; answered with a list of Row, in order."""

    scopes: tuple[str, ...]


class RowAt(NamedTuple):
    """One row by its number; answered with a Row or None."""

    seq: int


class Sweep(NamedTuple):
    """Drop idempotency claims that ended before `at`, and attachments; answered with None. The journal keeps their
    history."""

    at: int


@dataclass(slots=True)
class Write:
    """Append rows, change projections, move the head; answered with None once all of it is committed."""

    rows: Sequence[Row]
    changes: Mapping[tuple[str, Any], tuple[Any, ...] | None]
    head: Head
    durable: bool
    attached: Sequence[Attachment] = ()
    """Whole bodies of rows that hold only their beginning, in the same transaction."""
    budget: int = 0
    """Bytes of them that one persona may have, open questions aside."""
    archived: int = 0
    """The last row that goes, because it is in an archive; with expired claims, which only it could explain."""


Query = RowsAfter | RowsOf | LoadTables | Recent | Heavy | ClaimsOf | RowAt | Sweep | Write
Transaction = Generator[Query, Any, None]


class Submission:
    """One unit of work for a transaction, and what came of it. What it decides is the ledger's business; what most
    never set are attributes of the class, for two are made for every call."""

    durable = True
    """Whether it must be on disk before its caller hears of it."""
    value: Any = None
    error: BaseException | None = None
    future: asyncio.Future[Any] | None = None
    """What its caller awaits, where it waits for others."""
    finished = False

    async def outcome(self) -> Any:
        """What was decided. A caller that is cancelled still waits for it: it must know before it goes."""
        import asyncio

        assert self.future is not None
        try:
            return await self.future
        except asyncio.CancelledError:
            if not self.finished:
                self.future = self.future.get_loop().create_future()
                self.future.add_done_callback(_heard)
                await asyncio.wait((self.future,))
            raise

    def finish(self) -> None:
        """On the caller's loop, once it is committed or has failed."""
        self.finished = True
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def spoil(jobs: Sequence[Submission], error: BaseException | None) -> None:
    """Whatever was decided does not hold, for this reason; without one, all of it is decided again."""
    for job in jobs:
        job.value, job.error = None, error


def finish(jobs: Sequence[Submission]) -> None:
    for job in jobs:
        job.finish()


def _heard(future: asyncio.Future[Any]) -> None:
    """Nobody else will ask what became of it."""
    if not future.cancelled():
        future.exception()


Fold = Callable[[Sequence[Any], Head], Transaction]
"""Jobs, and the head under its lock: what the ledger makes of them."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows a reader wants; empty fields do not restrict."""

    after: int = 0
    before: int = 0
    since: int = 0
    until: int = 0
    call: str = ""
    persona: str = ""
    tool: str = ""
    conversation: str = ""
    ref: str = ""
    about: str = ""
    """A part of an id: the call or the ref begins or ends with it."""
    kinds: tuple[str, ...] = ()
    body: Mapping[str, str] = field(default_factory=dict)
    """Equality on top-level texts of the body, such as type, op or file_path."""
    newest_first: bool = False
    limit: int = 1000


class Snapshot(Protocol):
    """The database as it was at one moment."""

    async def head(self) -> Head: ...

    def scan(self, after: int = 0, batch: int = 5000) -> AsyncIterator[list[Row]]:
        """All rows in order, whatever the head says."""
        ...

    async def tables(self) -> Tables:
        """Every projection, claims included."""
        ...


class Backend(Protocol):
    """A database that holds one journal."""

    name: str

    async def begun(self) -> bool:
        """Whether something is recorded here. Asked before it is opened, and leaves nothing behind."""
        ...

    async def open(self, fold: Fold) -> None: ...

    async def close(self) -> None: ...

    def at_once(self, job: Submission) -> bool:
        """Run a lone caller's job here and now if nothing needs to be waited for; whether that was so. Raises its error."""
        ...

    async def submit(self, job: Submission, alone: Callable[[], bool] | None = None) -> Any:
        """Run the job in a transaction, possibly together with others; return what it decided. Each is submitted once.

        `alone` tells whether nobody else in this process is waiting, so that there is nothing to share a commit with.
        """
        ...

    async def head(self) -> Head: ...

    async def rows(self, wanted: Filter) -> list[Row]: ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """A consistent view for long reading, undisturbed by writers and not disturbing them."""
        ...

    async def changed(self, seconds: float) -> None:
        """Return when another process may have written, or after so many `seconds`."""
        ...

    async def size(self) -> int:
        """Bytes on disk."""
        ...

    async def sums(self, first: int, end: int) -> list[Sum]:
        """The kept sums of the blocks `first` up to but not `end`, of those that still end with the same event."""
        ...

    async def keep_sums(self, sums: Sequence[Sum]) -> None:
        """Keep them, in place of others of these blocks. May be lost."""
        ...

    # --- attachments: beside the journal, under no chain, trimmed --------------------------------------------

    async def attachment(self, seq: int) -> str | None:
        """The whole body of this event, if it is still kept."""
        ...

    async def grown(self, since: int) -> list[Grown]:
        """Events and bytes that each persona brought since then."""
        ...

    async def attachments(self) -> list[AttachedBytes]:
        """How much is kept for whom."""
        ...

    # --- code_executions: beside the journal, under no chain, trimmed ----------------------------------------

    async def add_execution(self, row: ExecutionRow, keep: Keep) -> None:
        """Store it and let go of what is no longer kept. May be lost in a power cut, as reads may."""
        ...

    async def executions(self, wanted: Executions) -> list[ExecutionRow]: ...

    async def count_executions(self, wanted: Executions) -> list[Counted]: ...
