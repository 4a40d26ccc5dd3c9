"""What the journal says is true now: live calls, open questions, grants, pauses, recent calls.

One reducer, `State.apply`, serves three readers: a process that follows the journal, `verify`, which rebuilds
everything from the first row, and the tests' model. The projection tables are what it emits, nothing more.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND
from toolgate.core.event import Event, Started
from toolgate.core.records import dataclass, field, replace
from toolgate.ledger.attachments import weight
from toolgate.ledger.chain import Standing
from toolgate.ledger.items import Grant, Live, Open, parsed, request_of
from toolgate.storage.port import Row, is_heavy
from toolgate.storage.schema import EMPTY_HASH

if TYPE_CHECKING:
    from toolgate.core.ports import Window

HORIZON = 3600 * SECOND
"""No limit looks back further."""
MINUTE = 60 * SECOND
KEY_LIFETIME = 48 * 3600 * SECOND
Writes = tuple[str, ...]
Windows = Callable[[str, str, Writes], "tuple[Window, ...]"]


@dataclass(eq=False, repr=False)  # nobody compares two; and every command that opens a ledger makes the class
class State:
    windows: Windows | None = None
    """Which limits apply to (persona, tool, what it writes); None keeps no record of recent calls."""
    keep_claims: bool = False
    seq: int = 0
    at: int = 0
    hash: str = EMPTY_HASH
    live: dict[str, Live] = field(default_factory=dict)
    _questions: dict[str, Open] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    paused: dict[str, str] = field(default_factory=dict)
    pauses: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    """Calls whose outcome is unknown, until somebody who knows resolves them."""
    recent: dict[str, deque[int]] = field(default_factory=dict)
    written: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    """What each persona's long rows brought into the database in the last minute: (at, bytes)."""
    claims: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    policy: str = ""
    changes: dict[tuple[str, Any], tuple[Any, ...] | None] = field(default_factory=dict)
    """Projection rows to write: (table, key) → row, or None where it goes."""
    stands: Standing = field(default_factory=Standing)
    listed: bool = True
    """Whether it is known which questions there are. Else the head vouches for their sum, and nothing here depends on them."""
    missed: bool = False
    """Whether something has happened to a question while that was not known."""
    unread: set[str] = field(default_factory=set)
    """Questions that are known from their table alone: the head's seal vouches for that, and their rows are not read."""
    _counted: dict[tuple[str, str, Writes], tuple[deque[int], ...]] = field(default_factory=dict)
    """Where a call is counted: those of `recent`. Limits that change come with a new state."""
    _asked_by: dict[str, dict[str, None]] = field(default_factory=dict)
    """Questions by persona, oldest first, and by persona and digest; of those that are read."""
    _asked_for: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    _granted_to: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    """Grants by persona and tool."""
    ends: list[tuple[int, str]] = field(default_factory=list)
    """When questions and grants run out, the next one first; what has changed since is skipped."""

    @property
    def questions(self) -> dict[str, Open]:
        assert self.listed, "a Work that needs to know the questions says so with `refs`"
        return self._questions

    def apply(self, row: Row, event: Event | None = None) -> None:
        """Take one row in. `event` saves parsing where the caller has just made it."""
        self.seq, self.at, self.hash = row[0], row[1], row[12]
        if self.windows is not None and is_heavy(row[10]):
            self.weigh(row[1], row[4], row[10])
        handler = _HANDLERS.get(row[2])
        if handler is not None:
            handler(self, row, event)

    def follow_ref(self, row: Row) -> None:
        """Rebuild one question or grant from its own rows: a started call only uses it."""
        if row.kind == "started":
            self._use(row.ref)
        else:
            self.apply(row)

    def adopt(self, row: Row) -> None:
        """Take over a running call or a pause whose questions and grants are known already."""
        if row.kind == "started":
            body = parsed(row)
            self.live[row.call] = Live(row, body["owner"], request_of(body))
        elif row.kind == "paused":
            self.apply(row)
        elif row.kind == "unknown":
            self.doubts[row.call] = row.seq
            self.stands.put("doubts", row.call, (row.call, row.seq))

    def count(self, at: int, persona: str, tool: str, writes: Writes = ()) -> None:
        """Remember that a call started, as far as any limit looks back."""
        if self.windows is None:
            return
        counted = self._counted.get((persona, tool, writes))
        if counted is None:
            scopes = dict.fromkeys(window.scope for window in self.windows(persona, tool, writes))
            counted = tuple(self.recent.setdefault(scope, deque()) for scope in scopes)
            self._counted[persona, tool, writes] = counted
        old = at - HORIZON
        for times in counted:
            times.append(at)
            while times[0] <= old:
                times.popleft()

    def weigh(self, at: int, persona: str, body: str) -> None:
        """Remember what a long row brought into the database."""
        self.written.setdefault(persona, deque()).append((at, weight(body)))
        self.written_by(persona, at)

    def written_by(self, persona: str, now: int) -> int:
        """Bytes of the persona's long rows in the last minute."""
        rows = self.written.get(persona)
        if not rows:
            return 0
        while rows and rows[0][0] <= now - MINUTE:
            rows.popleft()
        return sum(size for _, size in rows)

    def tables(self) -> dict[str, dict[Any, tuple[Any, ...]]]:
        """The projections as the database should hold them."""
        return {
            "questions": {question.id: question.stored for question in self._questions.values()},
            "grants": {grant.id: grant.stored for grant in self.grants.values()},
            "pauses": {persona: (persona, seq) for persona, seq in self.pauses.items()},
            "doubts": {call: (call, seq) for call, seq in self.doubts.items()},
            "claims": dict(self.claims),
        }

    def running(self) -> str:
        """The numbers of the events that started what runs now, in order: the head carries them."""
        return ",".join([str(item.row[0]) for item in self.live.values()])

    # --- questions and grants, without a walk through all of them ------------------------------------------

    def due(self, now: int, most: int) -> list[Open | Grant]:
        """What has run out of time, up to so many."""
        found: dict[str, Open | Grant] = {}
        ends = self.ends
        popped = []
        while ends and ends[0][0] <= now and len(found) < most:
            end = heapq.heappop(ends)
            item: Open | Grant | None = self._questions.get(end[1]) or self.grants.get(end[1])
            if item is not None and item.expires == end[0]:
                popped.append(end)
                found[end[1]] = item
        for end in popped:  # they go when it is recorded that they are gone
            heapq.heappush(ends, end)
        return list(found.values())

    def questions_of(self, persona: str) -> list[Open]:
        """Oldest first; of those that are read."""
        return [self.questions[ident] for ident in self._asked_by.get(persona, ())]

    def questions_for(self, persona: str, digests: Iterable[str]) -> list[Open]:
        """About one call; of those that are read."""
        return [
            self.questions[ident]
            for digest in digests
            for ident in self._asked_for.get((persona, digest), ())
        ]

    def grants_of(self, persona: str, tool: str) -> list[Grant]:
        return [self.grants[ident] for ident in self._granted_to.get((persona, tool), ())]

    def list_questions(self, stored: Sequence[tuple[Any, ...]]) -> None:
        """Take over questions from their table, oldest first; their rows are read when they are needed."""
        self._questions = {row[0]: Open(*row) for row in stored}
        self.unread = set(self._questions)
        self.listed = True
        self.ends += [(row[3], row[0]) for row in stored]
        heapq.heapify(self.ends)

    def read_question(self, question: Open) -> None:
        """The same with its rows."""
        self.unread.discard(question.id)
        self.questions[question.id] = question
        self._index(question)

    def _claim(self, row: tuple[Any, ...]) -> None:
        self.changes["claims", row[0]] = row
        if self.keep_claims:
            self.claims[row[0]] = row

    # --- one handler per kind that changes what is true now ----------------------------------------------

    def _asked(self, row: Row, event: Event | None) -> None:
        known = parsed(row, event)
        self._put_question(Open(row.ref, row.seq, "open", int(known["expires"]), row, known))

    def _approved(self, row: Row, event: Event | None) -> None:
        if not self.listed:
            self.missed = True
            return
        question, known = self.questions.get(row.ref), parsed(row, event)
        if question is not None and (question.known is None or question.digest == known["digest"]):
            expires = int(known["expires"])
            self._put_question(replace(question, state="approved", expires=expires, channel=known["channel"]))

    def _closed(self, row: Row, event: Event | None) -> None:
        """Refused, expired or revoked."""
        grant = self.grants.pop(row.ref, None)
        if grant is None:
            self._drop_question(row.ref)
        else:
            self._granted_to[grant.row.persona, grant.row.tool].pop(row.ref, None)
            self._change("grants", row.ref, None)

    def _granted(self, row: Row, event: Event | None) -> None:
        self._put_grant(Grant(row.ref, row, parsed(row, event), 0, int(parsed(row, event)["expires"])))

    def _started(self, row: Row, event: Event | None) -> None:
        writes: Writes = ()
        if type(event) is Started:
            item = Live(row, event.owner, event.request or event.digest)
            writes = tuple(event.writes)
        elif row.claim or self.windows is not None:
            known = parsed(row)
            item = Live(row, known["owner"], request_of(known))
            writes = tuple(known.get("writes", ()))
        else:
            item = Live(row, "", "")  # verify: most are settled a row later, so nothing is parsed
        self.live[row.call] = item
        if row.claim:
            self._claim((row.claim, row.call, item.request, "started", row.seq, row.at + KEY_LIFETIME))
        if row.ref:
            self._use(row.ref)
        if self.windows is not None:
            self.count(row.at, row.persona, row.tool, writes)

    def _settled(self, row: Row, event: Event | None) -> None:
        item = self.live.pop(row.call, None)
        if item is None:
            return
        if row.kind == "unknown":
            self.doubts[row.call] = row.seq
            self._change("doubts", row.call, (row.call, row.seq))
        if row.claim:
            expires = item.row.at + KEY_LIFETIME
            self._claim((row.claim, row.call, item.request, row.kind, row.seq, expires))

    def _resolved(self, row: Row, event: Event | None) -> None:
        known = parsed(row, event)
        if known["outcome"] == "unknown":
            return
        if self.doubts.pop(row.call, None) is not None:
            self._change("doubts", row.call, None)
        if row.claim:
            state = "happened" if known["outcome"] == "happened" else "failed"
            self._claim((row.claim, row.call, known.get("digest", ""), state, row.seq, row.at + KEY_LIFETIME))

    def _paused(self, row: Row, event: Event | None) -> None:
        self.paused[row.persona] = parsed(row, event).get("reason", "")
        self.pauses[row.persona] = row.seq
        self._change("pauses", row.persona, (row.persona, row.seq))

    def _resumed(self, row: Row, event: Event | None) -> None:
        self.paused.pop(row.persona, None)
        self.pauses.pop(row.persona, None)
        self._change("pauses", row.persona, None)

    def apply_policy(self, row: Row) -> None:
        """Adopt the newest policy row of a ledger whose state was loaded from tables."""
        self.policy = self.policy or parsed(row)["policy"]

    def _configured(self, row: Row, event: Event | None) -> None:
        self.policy = parsed(row, event)["policy"]

    def _use(self, ref: str) -> None:
        """An approval is gone once used; a grant counts its uses."""
        grant = self.grants.get(ref)
        if grant is None:
            self._drop_question(ref)
        else:
            self._put_grant(replace(grant, uses=grant.uses + 1))

    def _put_question(self, question: Open) -> None:
        if not self.listed:
            self.missed = True
            return
        self.questions[question.id] = question
        if question.known is not None:
            self._index(question)
        heapq.heappush(self.ends, (question.expires, question.id))
        self._change("questions", question.id, question.stored)

    def _index(self, question: Open) -> None:
        persona = question.row.persona
        self._asked_by.setdefault(persona, {})[question.id] = None
        self._asked_for.setdefault((persona, question.digest), {})[question.id] = None

    def _drop_question(self, ref: str) -> None:
        if not self.listed:
            self.missed = True
            return
        question = self._questions.pop(ref, None)
        if question is None:
            return
        self.unread.discard(ref)
        if question.known is not None:
            _forget(self._asked_by, question.row.persona, ref)
            _forget(self._asked_for, (question.row.persona, question.digest), ref)
        self._change("questions", ref, None)

    def _put_grant(self, grant: Grant) -> None:
        self.grants[grant.id] = grant
        self._granted_to.setdefault((grant.row.persona, grant.row.tool), {})[grant.id] = None
        heapq.heappush(self.ends, (grant.expires, grant.id))
        self._change("grants", grant.id, grant.stored)

    def _change(self, table: str, key: str, row: tuple[Any, ...] | None) -> None:
        """What stands has changed: in the projection, and for the head's seal."""
        self.changes[table, key] = row
        if row is None:
            self.stands.drop(table, key)
        else:
            self.stands.put(table, key, row)


def _forget(index: dict[Any, dict[str, None]], key: Any, ident: str) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(ident, None)
        if not found:
            del index[key]


_HANDLERS: dict[str, Callable[[State, Row, Event | None], None]] = {
    "asked": State._asked,
    "approved": State._approved,
    "refused": State._closed,
    "expired": State._closed,
    "revoked": State._closed,
    "granted": State._granted,
    "started": State._started,
    "committed": State._settled,
    "failed": State._settled,
    "unknown": State._settled,
    "resolved": State._resolved,
    "paused": State._paused,
    "resumed": State._resumed,
    "configured": State._configured,
}

__all__ = ["Grant", "Live", "Open", "State", "Windows", "parsed", "request_of"]
