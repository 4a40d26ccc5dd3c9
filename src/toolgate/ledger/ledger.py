"""One journal, many writers: how a unit of work becomes rows.

A Work looks at what is true now and says what happens next, inside the transaction that records it. The whole
transaction is written here once, as a generator of questions to the database; backends only answer them. Every
process follows the journal: rows of other processes are checked (link, hash, seal) before they are believed, so
a forged approval stops the gate instead of opening it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.clock import SECOND, Clock, SystemClock
from toolgate.core.errors import LedgerBroken, Unavailable
from toolgate.core.event import Archived, Asked, Event, Rotated
from toolgate.ledger import attachments
from toolgate.ledger.chain import (
    QUESTIONS,
    check_head,
    check_key,
    fault_of,
    make_head,
    questions_of,
    running_of,
    seal,
)
from toolgate.ledger.items import writes_of
from toolgate.ledger.limits import USUAL
from toolgate.ledger.state import HORIZON, MINUTE, State, Windows
from toolgate.ledger.work import Refs, View, Work, all_questions, no_question
from toolgate.storage import schema
from toolgate.storage.port import (
    Backend,
    ClaimsOf,
    Head,
    Heavy,
    LoadTables,
    Query,
    Recent,
    Row,
    RowAt,
    RowsAfter,
    RowsOf,
    Sweep,
    Transaction,
    Write,
)
from toolgate.storage.schema import Attachment

if TYPE_CHECKING:
    from toolgate.ledger.keys import Keys

T = TypeVar("T")
_text = methodcaller("text")
_MAYBE = attachments.ROW_BYTES // 4
"""Characters that a row always has room for: most are far shorter, and nothing more is asked about them."""
SKEW = 60 * SECOND
"""How far the clock may stand behind the last event before nothing runs any more."""


DUE = 64
"""Questions and grants that one transaction may close because their time is over."""


class Ledger:
    def __init__(
        self, backend: Backend, keys: Keys, clock: Clock | None = None, windows: Windows | None = None
    ) -> None:
        self.backend = backend
        self.keys = keys
        self.clock = clock or SystemClock()
        self.windows = windows or (lambda persona, tool, writes: ())
        self.limits_effects: Callable[[], bool] = lambda: False
        """Whether any limit counts by what calls write: only then the rows of recent ones are read for it."""
        self.callers = 0
        """Calls under way in this process: a lone one need not wait to share a commit."""
        self.allowance = USUAL
        """What one persona may bring into the database."""
        self.reload_keys: Callable[[], Keys] | None = None
        self._state: State | None = None
        self._sealing = keys.current
        self._archived = 0
        """The last row that the transaction under way takes out."""
        self._floor = 0
        """The last event that is known to be written, also where the state is not: the journal never ends before it."""
        self.committed: list[Callable[[Sequence[Row]], None]] = []
        """Told about rows after they are on disk; called from the thread that committed them."""
        self.moved: list[Callable[[], object]] = []
        """Told likewise that something has happened to a question or a grant."""

    async def open(self) -> None:
        await self.backend.open(self._transaction)
        try:
            await self.look(lambda state, now: None)
        except BaseException:
            await self.backend.close()
            raise

    async def close(self) -> None:
        await self.backend.close()

    def at_once(self, work: Work[Any]) -> bool:
        """Whether it is done, because nobody else waits for anything; else somebody must wait for `do`."""
        return self.callers <= 1 and not work.heavy and self.backend.at_once(work)

    async def do(self, work: Work[T]) -> T:
        if not self.at_once(work):
            await self.backend.submit(work, None if work.heavy else self._alone)
        value: T = work.value
        return value

    def _alone(self) -> bool:
        return self.callers <= 1

    async def look(self, read: Callable[[State, int], T], refs: Refs | None = None) -> T:
        """Read the state as it is now, caught up with every other process."""
        return await self.do(Work(lambda view: read(view.state, view.now), durable=False, refs=refs))

    async def calls_needed(self) -> frozenset[str]:
        """Calls of which the images are needed: those that run, and those whose outcome is unknown. Recovery and
        `ledger resolve` may have to write what these planned."""
        return await self.look(lambda state, now: frozenset(state.live) | frozenset(state.doubts))

    async def tell(self, event: Event) -> None:
        """Record what decides nothing. It survives kill -9 but not a power cut."""
        await self.do(Work(lambda view: view.emit(event), durable=False))

    def forget(self) -> None:
        """Rebuild the state at the next transaction: after a change of limits."""
        self._state = None

    # --- the transaction, without I/O --------------------------------------------------------------------

    def _transaction(self, works: Sequence[Work[Any]], head: Head) -> Transaction:
        rows: list[Row] = []
        attached: list[Attachment] = []
        self._archived = 0
        try:
            state = self._state
            if state is None or state.hash != head.hash or state.seq != head.seq:
                state = yield from self._catch_up(head)
            now = head.now or self.clock.now()
            if now < head.at:
                now = _behind(now, head)
            scopes: tuple[str, ...] = ()
            for work in works:
                scopes += work.scopes
            claims = self._claims((yield ClaimsOf(scopes))) if scopes else {}
            durable = False
            for work in works:
                if not state.listed and work.looks_at_questions:
                    yield from self._list_questions(state)
                if state.unread:
                    yield from self._read_questions(work, state, now)
                if self._decide(work, state, now, claims):
                    rows += work.rows
                    attached += work.attached
                    durable = durable or work.durable
            if rows:
                changes, state.changes = state.changes, {}
                live = state.running() if state.live else ""
                assert not state.missed, "a Work that does something to a question says so with `refs`"
                stands = state.stands
                some = stands.lines or stands.absent
                head = self._head(rows[-1], state, live) if some else make_head(rows[-1], self.keys, live, "")
                yield Write(rows, changes, head, durable, attached, self.allowance.kept, self._archived)
        except BaseException:
            self._state = None  # it may hold what was never written
            raise
        if rows:
            self._floor = head[0]
            if self.committed or len(rows) > 1 or rows[0][7]:
                self._tell(rows)

    def _head(self, row: Row, state: State, live: str) -> Head:
        standing = state.stands.sealed(self.keys, row[9])
        return make_head(
            row, self.keys, live, standing, state.stands.asked(row[0], row[12]) if standing else ""
        )

    def _tell(self, rows: Sequence[Row]) -> None:
        for listener in self.committed:
            listener(rows)
        if any(row.ref for row in rows):
            for hear in self.moved:
                hear()

    def _decide(self, work: Work[Any], state: State, now: int, claims: dict[str, tuple[Any, ...]]) -> bool:
        """Whether there is anything to write; its rows are in the work then."""
        view = View(state, now, claims)
        try:
            work.value = work.decide(view)
            texts: list[Any] = list(map(_text, view.events)) if view.made is None else view.texts(view.made)
            for index, text in enumerate(texts):
                event = view.events[index]
                if (len(text) > _MAYBE or type(event) is Asked) and type(text) is str:
                    texts[index] = attachments.fitted(event, text, now)
        except Exception as error:  # its caller's, not the batch's
            work.value, work.error = None, error
            return False
        work.rows = rows = []
        if work.attached:
            work.attached = ()  # of a guess that was wrong
        for event, text in zip(view.events, texts, strict=True):
            known: Event | None = event
            if type(text) is not str:  # then the state knows what others can know of it: what the row says
                text, known = self._attach(work, state.seq + 1, event, text), None
            if type(event) is Rotated:  # sealed with the new key: the head always names the key in use
                self._sealing = event.version
            elif type(event) is Archived:
                self._archived = event.last
            row = seal(
                (
                    state.seq + 1, now, event.kind, event.call, event.persona, event.tool, event.conversation,
                    event.ref, event.claim, self._sealing, text, state.hash,
                ),
                self.keys,
            )  # fmt: skip
            state.apply(row, known)
            rows.append(row)
        for scope in work.scopes:  # a twin in the same batch must see the claim
            claim = state.changes.get(("claims", scope))
            if claim is not None:
                claims[scope] = claim
        return bool(rows)

    @staticmethod
    def _attach(work: Work[Any], seq: int, event: Event, made: attachments.Shortened) -> str:
        if made.expires:
            one = Attachment(seq, event.persona, made.expires, made.bytes, made.whole)
            work.attached = [*work.attached, one]
        return made.text

    # --- following the journal ---------------------------------------------------------------------------

    def _catch_up(self, head: Head) -> Generator[Query, Any, State]:
        state = self._state
        if head.seq and head.key not in self.keys and self.reload_keys is not None:
            self.keys = self.reload_keys()  # another process has rotated the key
        check_key(head, self.keys)
        self._sealing = head.key or self.keys.current
        written = self._floor if state is None else max(self._floor, state.seq + 1)
        if head.seq < written:
            raise LedgerBroken(
                f"the ledger ends at event {head.seq}, but event {self._floor} was already written",
                "an older or foreign copy was put in its place; restore the right one",
            )
        if state is None or not (state.listed or questions_of(head)):
            state = yield from self._load(head)
        else:
            self._follow(state, (yield RowsAfter(state.seq)), head)
        check_head(head, self.keys, state.running(), state.stands)
        self._state, self._floor = state, head.seq
        return state

    def _follow(self, state: State, rows: Sequence[Row], head: Head) -> None:
        for row in rows:
            self._trust(row, state.seq + 1, state.hash)
            state.apply(row)
        state.changes.clear()
        if not state.listed:  # whatever has happened to them: the head says what they come to now
            state.missed = False
            state.stands.leave_out(head, self.keys)
        if state.hash != head.hash:
            raise _broken(head.seq, "the head does not belong to the last event")

    def _load(self, head: Head) -> Generator[Query, Any, State]:
        """From the projections, each checked against its sealed rows: tables alone prove nothing."""
        state = State(windows=self.windows)
        last = yield RowAt(head.seq)
        if last is not None and fault_of(last, last.seq, last.prev, self.keys):
            raise LedgerBroken(
                f"event {head.seq}, the last one, is not sealed with the key in {self.keys.source}",
                "restore the key that belongs to this ledger; if it is the right one, run `toolgate ledger verify`",
            )
        state.listed = not questions_of(head)
        names = [name for name in schema.IN_MEMORY if name != QUESTIONS or state.listed]
        tables = yield LoadTables(tuple(names))
        if state.listed:
            questions = _in_order(tables[QUESTIONS])
            state.list_questions(questions)
            state.stands.list_all(questions)
        else:
            state.stands.leave_out(head, self.keys)
        for row in (yield RowsOf(tuple(tables["grants"]))):
            self._trust(row, row.seq, row.prev)
            state.follow_ref(row)
        _compare(state, "grants", tables["grants"])
        for seq in running_of(head):
            row = yield RowAt(seq)
            if row is None or row.kind != "started":
                raise _broken(seq, "the head says that it started a call which runs")
            self._trust(row, row.seq, row.prev)
            state.adopt(row)
        for table in ("pauses", "doubts"):
            for stored in tables[table].values():
                row = yield RowAt(stored[1])
                if row is not None:
                    self._trust(row, row.seq, row.prev)
                    state.adopt(row)
            _compare(state, table, tables[table])
        for at, persona, tool, body in (yield Recent(head.at - HORIZON, self.limits_effects())):
            state.count(at, persona, tool, writes_of(body) if body else ())
        for at, persona, body in (yield Heavy(head.at - MINUTE)):
            state.weigh(at, persona, body)
        yield Sweep(head.at)
        state.changes.clear()
        state.seq, state.at, state.hash = head.seq, head.at, head.hash
        return state

    def _list_questions(self, state: State) -> Generator[Query, Any, None]:
        """Which questions there are: what their table says, if it adds up to what the head's seal says."""
        tables = yield LoadTables((QUESTIONS,))
        questions = _in_order(tables[QUESTIONS])
        if not state.stands.take_in(questions):
            raise LedgerBroken(
                f"the table questions is not what was sealed with the key in {self.keys.source}",
                "run `toolgate ledger verify`; somebody changed the database",
            )
        state.list_questions(questions)

    def _read_questions(self, work: Work[Any], state: State, now: int) -> Generator[Query, Any, None]:
        """The rows of the questions that a Work needs. Each is believed only if its own sealed rows say what the head's
        seal says of it; one that is not needed costs nothing."""
        wanted = state.unread.intersection(
            (*work.refs(state, now), *(item.id for item in state.due(now, DUE)))
        )
        if not wanted:
            return
        told = State()
        for row in (yield RowsOf(tuple(sorted(wanted)))):
            self._trust(row, row.seq, row.prev)
            told.follow_ref(row)
        _compare(told, "questions", {ident: state.questions[ident].stored for ident in wanted})
        for ident in wanted:
            state.read_question(told.questions[ident])

    def _claims(self, rows: Sequence[Row]) -> dict[str, tuple[Any, ...]]:
        """What the sealed rows say of these scopes. The table alone would let whoever empties it run a key twice."""
        told = State(keep_claims=True)
        for row in rows:
            self._trust(row, row.seq, row.prev)
            told.apply(row)
        return told.claims

    def _trust(self, row: Row, seq: int, prev: str) -> None:
        fault = fault_of(row, seq, prev, self.keys)
        if fault:
            raise _broken(seq, fault)


def _in_order(questions: Mapping[Any, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(questions.values(), key=lambda row: row[1])


def _compare(state: State, table: str, stored: Mapping[Any, tuple[Any, ...]]) -> None:
    found = state.tables()[table]
    for key, row in stored.items():
        if found.get(key) != tuple(row):
            raise LedgerBroken(
                f"{key!r} in the table {table} is not what the journal says",
                "run `toolgate ledger verify`; somebody changed the database",
            )


def _behind(now: int, head: Head) -> int:
    """Never before the last event; a clock that is far behind stops the gate rather than reviving approvals."""
    if head.at - now > SKEW:
        raise Unavailable(
            f"the clock is {(head.at - now) / SECOND:,.0f} s behind the last recorded event",
            "set the clock right; nothing runs until it has caught up",
        )
    return head.at


def _broken(seq: int, fault: str) -> LedgerBroken:
    return LedgerBroken(
        f"event {seq} of the ledger is bad: {fault}", "run `toolgate ledger verify`; nothing runs on it"
    )


__all__ = ["DUE", "Ledger", "View", "Work", "all_questions", "no_question"]
