"""What the journal says is true now: live calls, open questions, grants, pauses, recent calls.

One reducer, `State.apply`, serves three readers: a process that follows the journal, `verify`, which rebuilds
everything from the first row, and the tests' model. The projection tables are what it emits, nothing more.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolgate.core.clock import SECOND
from toolgate.core.event import Event, Started
from toolgate.core.ports import Window
from toolgate.ledger.attachments import weight
from toolgate.storage.port import CUT, FREE, Row, Tables
from toolgate.storage.schema import EMPTY_HASH, IN_MEMORY

HORIZON = 3600 * SECOND
"""No limit looks back further."""
MINUTE = 60 * SECOND
KEY_LIFETIME = 48 * 3600 * SECOND
Windows = Callable[[str, str], tuple[Window, ...]]


@dataclass(slots=True)
class Live:
    """A call that has started and is not settled."""

    row: Row
    owner: str
    request: str


@dataclass(frozen=True, slots=True)
class Open:
    """A question that is open, or approved and not used yet."""

    id: str
    row: Row
    body: Mapping[str, Any]
    state: str
    expires: int
    channel: str = ""
    """Where it was approved."""

    @property
    def digest(self) -> str:
        return str(self.body["digest"])


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    row: Row
    body: Mapping[str, Any]
    uses: int
    expires: int


@dataclass
class State:
    windows: Windows | None = None
    """Which limits apply to (persona, tool); None keeps no record of recent calls."""
    keep_claims: bool = False
    seq: int = 0
    at: int = 0
    hash: str = EMPTY_HASH
    live: dict[str, Live] = field(default_factory=dict)
    questions: dict[str, Open] = field(default_factory=dict)
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
    _counted: dict[tuple[str, str], tuple[deque[int], ...]] = field(default_factory=dict)
    """Where a call is counted: those of `recent`. Limits that change come with a new state."""

    def apply(self, row: Row, event: Event | None = None) -> None:
        """Take one row in. `event` saves parsing where the caller has just made it."""
        self.seq, self.at, self.hash = row[0], row[1], row[12]
        if self.windows is not None and (len(row[10]) > FREE or CUT in row[10]):
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

    def count(self, at: int, persona: str, tool: str) -> None:
        """Remember that a call started, as far as any limit looks back."""
        if self.windows is None:
            return
        counted = self._counted.get((persona, tool))
        if counted is None:
            scopes = dict.fromkeys(window.scope for window in self.windows(persona, tool))
            counted = tuple(self.recent.setdefault(scope, deque()) for scope in scopes)
            self._counted[persona, tool] = counted
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
            "questions": {q.id: (q.id, q.row.seq, q.state, q.expires) for q in self.questions.values()},
            "grants": {g.id: (g.id, g.row.seq, g.uses, g.expires) for g in self.grants.values()},
            "pauses": {persona: (persona, seq) for persona, seq in self.pauses.items()},
            "doubts": {call: (call, seq) for call, seq in self.doubts.items()},
            "claims": dict(self.claims),
        }

    def running(self) -> str:
        """The numbers of the events that started what runs now, in order: the head carries them."""
        return ",".join([str(item.row[0]) for item in self.live.values()])

    def standing(self) -> str:
        """What else stands now, in one spelling, for the head's seal; most of the time nothing does."""
        lines = [f"questions {q.id} {q.row.seq} {q.state} {q.expires}" for q in self.questions.values()]
        lines += [f"grants {g.id} {g.row.seq} {g.uses} {g.expires}" for g in self.grants.values()]
        lines += [f"pauses {persona} {seq}" for persona, seq in self.pauses.items()]
        lines += [f"doubts {call} {seq}" for call, seq in self.doubts.items()]
        lines.sort()
        return "\n".join(lines)

    def _claim(self, row: tuple[Any, ...]) -> None:
        self.changes["claims", row[0]] = row
        if self.keep_claims:
            self.claims[row[0]] = row

    # --- one handler per kind that changes what is true now ----------------------------------------------

    def _asked(self, row: Row, event: Event | None) -> None:
        self._put_question(Open(row.ref, row, parsed(row, event), "open", int(parsed(row, event)["expires"])))

    def _approved(self, row: Row, event: Event | None) -> None:
        question, known = self.questions.get(row.ref), parsed(row, event)
        if question is not None and question.digest == known["digest"]:
            expires = int(known["expires"])
            self._put_question(replace(question, state="approved", expires=expires, channel=known["channel"]))

    def _closed(self, row: Row, event: Event | None) -> None:
        """Refused, expired or revoked."""
        if self.questions.pop(row.ref, None) is not None:
            self.changes["questions", row.ref] = None
        if self.grants.pop(row.ref, None) is not None:
            self.changes["grants", row.ref] = None

    def _granted(self, row: Row, event: Event | None) -> None:
        self._put_grant(Grant(row.ref, row, parsed(row, event), 0, int(parsed(row, event)["expires"])))

    def _started(self, row: Row, event: Event | None) -> None:
        if type(event) is Started:
            item = Live(row, event.owner, event.request or event.digest)
        elif row.claim or self.windows is not None:
            known = parsed(row)
            item = Live(row, known["owner"], request_of(known))
        else:
            item = Live(row, "", "")  # verify: most are settled a row later, so nothing is parsed
        self.live[row.call] = item
        if row.claim:
            self._claim((row.claim, row.call, item.request, "started", row.seq, row.at + KEY_LIFETIME))
        if row.ref:
            self._use(row.ref)
        if self.windows is not None:
            self.count(row.at, row.persona, row.tool)

    def _settled(self, row: Row, event: Event | None) -> None:
        item = self.live.pop(row.call, None)
        if item is None:
            return
        if row.kind == "unknown":
            self.doubts[row.call] = row.seq
            self.changes["doubts", row.call] = (row.call, row.seq)
        if row.claim:
            expires = item.row.at + KEY_LIFETIME
            self._claim((row.claim, row.call, item.request, row.kind, row.seq, expires))

    def _resolved(self, row: Row, event: Event | None) -> None:
        known = parsed(row, event)
        if known["outcome"] == "unknown":
            return
        if self.doubts.pop(row.call, None) is not None:
            self.changes["doubts", row.call] = None
        if row.claim:
            state = "happened" if known["outcome"] == "happened" else "failed"
            self._claim((row.claim, row.call, known.get("digest", ""), state, row.seq, row.at + KEY_LIFETIME))

    def _paused(self, row: Row, event: Event | None) -> None:
        self.paused[row.persona] = parsed(row, event).get("reason", "")
        self.pauses[row.persona] = row.seq
        self.changes["pauses", row.persona] = (row.persona, row.seq)

    def _resumed(self, row: Row, event: Event | None) -> None:
        self.paused.pop(row.persona, None)
        self.pauses.pop(row.persona, None)
        self.changes["pauses", row.persona] = None

    def apply_policy(self, row: Row) -> None:
        """Adopt the newest policy row of a ledger whose state was loaded from tables."""
        self.policy = self.policy or parsed(row)["policy"]

    def _configured(self, row: Row, event: Event | None) -> None:
        self.policy = parsed(row, event)["policy"]

    def _use(self, ref: str) -> None:
        """An approval is gone once used; a grant counts its uses."""
        if self.questions.pop(ref, None) is not None:
            self.changes["questions", ref] = None
        grant = self.grants.get(ref)
        if grant is not None:
            self._put_grant(replace(grant, uses=grant.uses + 1))

    def _put_question(self, question: Open) -> None:
        self.questions[question.id] = question
        self.changes["questions", question.id] = (
            question.id, question.row.seq, question.state, question.expires,
        )  # fmt: skip

    def _put_grant(self, grant: Grant) -> None:
        self.grants[grant.id] = grant
        self.changes["grants", grant.id] = (grant.id, grant.row.seq, grant.uses, grant.expires)


def parsed(row: Row, event: Event | None = None) -> Mapping[str, Any]:
    if event is not None:
        return event.body()
    known: Mapping[str, Any] = json.loads(row.body)
    return known


def request_of(body: Mapping[str, Any]) -> str:
    """What a repeated key is compared with: the call's digest without its Change."""
    return str(body.get("request") or body["digest"])


def standing_of(tables: Tables) -> str:
    """The same spelling, made from tables as a database holds them."""
    return "\n".join(
        sorted(f"{name} {' '.join(map(str, row))}" for name in IN_MEMORY for row in tables[name].values())
    )


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
