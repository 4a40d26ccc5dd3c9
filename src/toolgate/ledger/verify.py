"""Verification of the whole ledger: every row, every projection, the head, and a checkpoint kept elsewhere.

The first bad event is named. Without a key only the plain chain is checked, which together with a signed
checkpoint is what an outsider can do; an export as JSON lines is checked like that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core import wire
from toolgate.core.canonical import canonical
from toolgate.core.errors import CallError, LedgerBroken
from toolgate.core.event import BY_KIND
from toolgate.core.records import dataclass, field
from toolgate.ledger.chain import check_head, fault_of, sound
from toolgate.ledger.state import State, parsed
from toolgate.storage.port import Backend, Row
from toolgate.storage.schema import EMPTY_HASH, JOURNAL, NUMBERS, PROJECTIONS

if TYPE_CHECKING:
    from toolgate.ledger.checkpoint import Checkpoint
    from toolgate.ledger.keys import Keys
    from toolgate.storage.port import Head

Progress = Callable[[int, int], None]


@dataclass
class Report:
    """How a verification went."""

    events: int = 0
    head: str = ""
    bad_event: int | None = None
    fault: str = ""
    fix: str = ""
    checkpoints: int = 0
    first: int = 1
    """The first event that was checked; those before it are in an archive."""
    signed_to: int = 0
    """The last event that a checkpoint covers: with all before it, it was there when it was signed."""
    archived_to: int = 0
    """The last event that is in an archive which was not given."""
    in_archive: int = 0
    """Checkpoints of events in there, which therefore were not checked."""
    keyed: bool = True
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return self.first + self.events - 1

    @property
    def ok(self) -> bool:
        return not self.fault

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "events": self.events,
            "head": self.head,
            "bad_event": self.bad_event,
            "fault": self.fault,
            "fix": self.fix,
            "checkpoints": self.checkpoints,
            "first": self.first,
            "signed_to": self.signed_to,
            "unsigned": max(self.last - max(self.signed_to, self.first - 1), 0),
            "archived_to": self.archived_to,
            "checkpoints_in_archive": self.in_archive,
            "keyed": self.keyed,
        }


class Chain:
    """Follows rows from the first on; the same for a database and for an export."""

    def __init__(
        self,
        keys: Keys | None,
        checkpoints: Iterable[Checkpoint] = (),
        begin: tuple[int, str] = (0, EMPTY_HASH),
    ) -> None:
        self.keys = keys
        self.state = State(keep_claims=True)
        self.report = Report(keyed=keys is not None)
        self._key = 0
        self.state.seq, self.state.hash = begin
        self.report.first = begin[0] + 1
        self.archived: list[Mapping[str, Any]] = []
        """What the rows say of archives."""
        self.begun = begin[1]
        self._open = begin[0] == 0
        """Whether the first row may be a later one, after an archive that a row must name then."""
        self._awaited: dict[int, list[Checkpoint]] = {}
        for checkpoint in checkpoints:
            self._awaited.setdefault(checkpoint.seq, []).append(checkpoint)

    def take(self, rows: Iterable[Row]) -> bool:
        state, keys, awaited = self.state, self.keys, self._awaited
        for row in rows:
            if self._open:
                self._begin_at(row)
            seq = state.seq + 1
            fault = "" if sound(row, seq, state.hash, keys) else fault_of(row, seq, state.hash, keys)
            if not fault and (
                row[9] != self._key or row[1] < state.at or seq in awaited or row[2] not in BY_KIND
            ):
                fault = self._unusual(row)
            if not fault and row[8] and row[2] == "started":
                fault = self._claimed_twice(row)
            if fault:
                return self.fail(seq, fault)
            state.apply(row)
            if row[2] == "archived":
                self.archived.append(parsed(row))
        state.changes.clear()
        self.report.events, self.report.head = state.seq - self.report.first + 1, state.hash
        return True

    def _begin_at(self, row: Row) -> None:
        """The rows before it may be in an archive; then one of those that follow says so, and `finish` asks for it."""
        self._open = False
        if isinstance(row.seq, int) and row.seq > 1:
            self.state.seq, self.state.hash = row.seq - 1, row.prev
            self.begun = row.prev
            self.report.first, self.report.archived_to = row.seq, row.seq - 1

    def _unusual(self, row: Row) -> str:
        if row.at < self.state.at:
            return "it is dated before the event it follows"
        if (
            row.key != self._key
            and self._key
            and (row.kind != "rotated" or parsed(row)["version"] != row.key)
        ):
            return f"the key version changes to {row.key} without a rotation"
        if row.kind not in BY_KIND:
            return f"its kind {row.kind!r} is not known"
        self._key = row.key
        for checkpoint in self._awaited.pop(row.seq, ()):
            if checkpoint.hash != row.hash:
                return f"it is not the event that the checkpoint of {checkpoint.when} signed"
            self.report.checkpoints += 1
            self.report.signed_to = max(self.report.signed_to, row.seq)
        return ""

    def _claimed_twice(self, row: Row) -> str:
        """A key runs again only after it failed or ran out."""
        claim = self.state.claims.get(row.claim)
        if claim is None or claim[3] == "failed" or claim[5] <= row.at:
            return ""
        return f"it runs again what its key had claimed for {claim[1]}"

    def finish(self) -> bool:
        base = self.report.archived_to
        if base and not self._continues(base):
            return self.fail(
                1,
                f"event 1 is missing: the first one is event {base + 1}, and no event says that an archive ends before it",
                "somebody cut the beginning off; restore a backup",
            )
        for seq, waiting in sorted(self._awaited.items()):
            if seq <= base:
                if seq == base and not all(self._signed(one) for one in waiting):
                    return self.fail(seq, f"the checkpoint of {waiting[0].when} signed another event {seq}")
                self.report.in_archive += len(waiting)
                continue
            return self.fail(
                seq,
                f"the ledger ends at event {self.state.seq}, but the checkpoint of {waiting[0].when} saw event {seq}",
                "an older copy was restored, or the end was cut off",
            )
        return True

    def _continues(self, base: int) -> bool:
        return any(one["last"] == base and one["hash"] == self.begun for one in self.archived)

    def _signed(self, checkpoint: Checkpoint) -> bool:
        return checkpoint.hash == self.begun

    def fail(self, seq: int | None, fault: str, fix: str = "") -> bool:
        self.report.bad_event, self.report.fault = seq, fault
        self.report.fix = fix or "keep a copy of the database; events before this one are intact"
        return False


async def verify(
    backend: Backend,
    keys: Keys | None,
    checkpoints: Iterable[Checkpoint] = (),
    progress: Progress | None = None,
    now: int = 0,
    archives: Iterable[Iterable[Row]] = (),
) -> Report:
    """With the rows of `archives`, in order, the whole chain from event 1 on."""
    chain = Chain(keys, checkpoints)
    if not all(chain.take(rows) for rows in archives):
        return chain.report
    async with backend.snapshot() as snapshot:
        head = await snapshot.head()
        if await _take_all(chain, snapshot.scan(), head, progress) and chain.finish():
            _check_end(chain, head)
            if chain.report.ok and keys is not None:
                _check_seal(chain, head, keys)
            if chain.report.ok and head.live != chain.state.running():
                chain.fail(head.seq, "the head does not say which calls run")
            if chain.report.ok:
                _check_tables(chain, await snapshot.tables(), now)
    return chain.report


async def _take_all(
    chain: Chain, batches: AsyncIterator[list[Row]], head: Head, progress: Progress | None
) -> bool:
    async for rows in batches:
        if not chain.take(rows):
            return False
        if progress is not None:
            progress(chain.state.seq, head.seq)
    return True


def _check_end(chain: Chain, head: Head) -> None:
    state = chain.state
    if head.seq > state.seq:
        chain.fail(state.seq + 1, f"event {state.seq + 1} is missing: the head says there are {head.seq}")
    elif head.seq < state.seq or head.hash != state.hash or head.at != state.at:
        chain.fail(state.seq, "the head does not belong to the last event")


def _check_seal(chain: Chain, head: Head, keys: Keys) -> None:
    try:
        check_head(head, keys, chain.state.running(), chain.state.stands)
    except LedgerBroken as error:
        chain.fail(head.seq, error.message, error.fix)


def _check_tables(chain: Chain, stored: Mapping[str, Mapping[Any, tuple[Any, ...]]], now: int) -> None:
    expected = chain.state.tables()
    for table in PROJECTIONS:
        want, have = expected[table], stored[table]
        if table == "claims":  # expired ones may be swept; the journal keeps their history
            want = {key: row for key, row in want.items() if row[5] > now or key in have}
        if want == {key: tuple(row) for key, row in have.items()}:
            continue
        key = next(
            k for k in sorted({*want, *have}) if want.get(k) != (tuple(have[k]) if k in have else None)
        )
        source = want.get(key) or have.get(key)
        seq = next(
            (v for v, name in zip(source or (), PROJECTIONS[table], strict=True) if name == "seq"), None
        )
        chain.fail(
            seq, f"{key!r} in the table {table} is not what the journal says", "somebody changed the database"
        )
        return


MAX_LINE = 1 << 30
"""Bytes. Rows of the first versions hold whole arguments, and results."""


def line_of(row: Row) -> str:
    """One event as one line; `body` stays the exact text that was hashed."""
    return canonical(row._asdict())


async def export(backend: Backend) -> AsyncIterator[str]:
    async with backend.snapshot() as snapshot:
        async for rows in snapshot.scan():
            for row in rows:
                yield line_of(row)


def verify_export(
    lines: Iterable[str], checkpoints: Iterable[Checkpoint], begin: tuple[int, str] | None = None
) -> Report:
    """The plain chain, and that it contains what the checkpoints signed. No secret is needed. `begin` is where an archive
    goes on: number and hash of the event before its first."""
    chain = Chain(None, checkpoints, begin) if begin else Chain(None, checkpoints)
    for batch in _batches(_rows(lines, chain)):
        if not chain.take(batch):
            return chain.report
    if chain.report.ok:
        chain.finish()
    return chain.report


def rows_in(lines: Iterable[str], name: str) -> Iterator[Row]:
    """The events of an archive; raises LedgerBroken for a line that is none."""
    for number, line in enumerate(lines, 1):
        try:
            yield row_of(line)
        except ValueError as error:
            raise LedgerBroken(
                f"{name}: line {number} is not an event: {error}", "get the file again"
            ) from None


def _rows(lines: Iterable[str], chain: Chain) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        try:
            yield row_of(line)
        except ValueError as error:
            chain.fail(number, f"line {number} is not an event: {error}")
            return


def row_of(line: str) -> Row:
    """The event of one line, which has exactly one spelling. Raises ValueError for everything else: what two programs
    could read in two ways proves nothing."""
    line = line.removesuffix("\n")
    try:
        data = wire.loads_object(line, limit=MAX_LINE)
        if list(data) != sorted(JOURNAL):
            raise ValueError(f"it has the fields {', '.join(data)[:200]}")
        row = Row(**data)
        for name, value in zip(JOURNAL, row, strict=True):
            if type(value) is not (int if name in NUMBERS else str):
                raise ValueError(f"{name} is of the wrong type")
        spelled = line_of(row)
        if line not in (spelled, wire.in_ascii(spelled)):
            raise ValueError("it is not canonical JSON")
        body = wire.loads_object(row.body, limit=MAX_LINE)
        if (
            "{" + ",".join(f"{canonical(name)}:{canonical(body[name])}" for name in sorted(body)) + "}"
            != row.body
        ):
            raise ValueError("its body is not canonical JSON")
    except CallError as error:
        raise ValueError(error.message) from None
    return row


def _batches(rows: Iterator[Row], size: int = 1000) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    yield batch
