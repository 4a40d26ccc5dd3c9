"""Adaptive limits: how far a persona's record raises its own rate limits, from the ledger alone.

Between a limit and what `adaptive` says lie four steps. Useful calls earn them, trouble takes them away. The step in force
is a function of the rows of the last day: nothing else is kept, and every process comes to the same one. It is worked out
when a limit would refuse a call, so that other calls pay nothing; a change is on record as `adapted`.

Useful is a call that changed files nobody of its kind changed before, one that a human let through, or one that an answer
was made of (`credit`). Equal calls count once, and calls that only look or try count for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Code
from toolgate.core.event import Adapted, Noted
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import replace
from toolgate.ledger.ledger import Work
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.core.ports import Window
    from toolgate.core.result import Result
    from toolgate.gate.flow import Flow, Services
    from toolgate.ledger.ledger import Ledger

STEPS = 4
DAY = 86_400 * SECOND
"""How far back the record counts."""
ROWS = 2000
"""Rows of a persona that are looked at, the newest."""
FRESH = 5 * SECOND
"""How long a step is believed while nothing speaks against it."""
CREDIT = "credit"
MOST_CREDITED = 5
"""Calls that one answer may name: an answer can be padded."""
_TROUBLE = ("failed", "unknown", "denied", "rejected", "refused", "flood")
_SERIOUS = frozenset({"denied", "refused", "unknown", "flood"})
"""What takes every step away; the rest takes one."""
_VIOLATIONS = frozenset({"outside_mount", "blocked_path"})
_NO_TROUBLE = frozenset({Code.RATE_LIMITED, Code.PENDING})


Subjects = tuple[str, ...]
"""What a call was about: files, or its digest."""
_NOTHING: tuple[Subjects, Subjects] = ((), ())


class EarnedStep(NamedTuple):
    step: int = 0
    useful: int = 0
    """Calls that count, towards this step and the next."""
    reason: str = "nothing is on record yet"


class _RecordWalk:
    """Goes through a persona's rows, oldest first."""

    def __init__(self, every: int) -> None:
        self.every, self.score = every, 0
        self.reason = "nothing useful is on record in the last day"
        self._seen: set[str] = set()
        self._begun: dict[str, tuple[Subjects, Subjects]] = {}
        """By call: what it counts as if it is useful by itself, and if an answer names it."""
        self._own: set[int] = set()

    def take(self, row: Row) -> None:
        if row.kind == "started":
            self._own.add(row.seq)
            self._begun[row.call] = _subjects(row)
        elif row.kind == "committed":
            self._own.add(row.seq)
            if not parsed(row).get("cached"):
                self._count(self._begun.get(row.call, _NOTHING)[0])
        elif row.kind == "noted":
            for call in list(parsed(row).get("data", {}).get("calls", ()))[:MOST_CREDITED]:
                self._count(self._begun.get(str(call), _NOTHING)[1])
        elif row.kind == "undone":
            if parsed(row).get("event") in self._own:
                self._lose(row, everything=True)
        else:
            violation = parsed(row).get("code") in _VIOLATIONS
            self._lose(row, everything=row.kind in _SERIOUS or violation)

    def _count(self, subjects: Subjects) -> None:
        if not self._seen.issuperset(subjects):
            self._seen.update(subjects)
            self.score = min(self.score + 1, STEPS * self.every)
            self.reason = f"{self.score} useful calls, {self.every} for each step"

    def _lose(self, row: Row, *, everything: bool) -> None:
        whole = self.score // self.every
        self.score = 0 if everything or not whole else (whole - 1) * self.every
        what = f"{row.tool or 'a call'} was {row.kind}" if row.kind != "flood" else "a flood of refusals"
        self.reason = f"{what} (event {row.seq})"

    def ended(self) -> EarnedStep:
        return EarnedStep(self.score // self.every, self.score, self.reason)


def _subjects(row: Row) -> tuple[Subjects, Subjects]:
    """Distinct is what was changed, not how: a file that is written a hundred times counts once."""
    body = parsed(row)
    digest = (str(body.get("digest", "")),)
    changed = tuple(
        str(one.get("path")) for one in body.get("change", ()) if one.get("before") != one.get("after")
    )
    if changed and not body.get("undoes") and _lasting(body):
        return changed, digest
    return digest if row.ref and body.get("decision") == "ask" and body.get("effectful") else (), digest


def _lasting(body: Mapping[str, Any]) -> bool:
    return bool(set(body.get("writes", ())) - {"scratch", "memory", "ledger"})


async def earned(ledger: Ledger, persona: str, every: int) -> EarnedStep:
    """What the record of the last day comes to."""
    rows, since = ledger.backend.rows, ledger.clock.now() - DAY
    kinds = ("started", "committed", *_TROUBLE)
    own = await rows(Filter(persona=persona, kinds=kinds, since=since, newest_first=True, limit=ROWS))
    first = own[-1].seq - 1 if own else 0
    undone = await rows(Filter(kinds=("undone",), after=first, newest_first=True, limit=ROWS))
    notes = await rows(
        Filter(kinds=("noted",), body={"type": CREDIT, "op": persona}, after=first, newest_first=True, limit=ROWS)
    )  # fmt: skip
    credited = [row for row in notes if not row.tool and not row.call]  # a tool's own annotations have both
    walk = _RecordWalk(every)
    for row in sorted((*own, *undone, *credited)):
        walk.take(row)
    return walk.ended()


async def credit(ledger: Ledger, persona: str, calls: Sequence[str], why: str) -> None:
    """Put on record that these calls led to an answer."""
    await ledger.tell(Noted(type=CREDIT, op=persona, rationale=why[:500], data={"calls": list(calls)}))


def raised(windows: Sequence[Window], steps: Mapping[str, int]) -> tuple[Window, ...]:
    """The windows as far as the steps raise them, by scope: never beyond what each says itself."""
    return tuple(
        replace(one, limit=one.limit + (one.most - one.limit) * min(steps[one.scope], STEPS) // STEPS)
        if one.most > one.limit and one.scope in steps
        else one
        for one in windows
    )


class EarnedLimits:
    """Steps as they were last worked out, and the record of their changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, tuple[int, int, EarnedStep]] = {}

    async def step(self, persona: str, every: int) -> EarnedStep:
        """As the record is now; trouble that is on record counts at once."""
        ledger, now = self._services.ledger, self._services.ledger.clock.now()
        trouble = await self._last_trouble(persona)
        known = self._known.get(persona)
        if known is not None and known[0] == trouble and 0 <= now - known[1] < FRESH:
            return known[2]
        found = await earned(ledger, persona, every)
        self._known[persona] = (trouble, now, found)
        await self._tell(persona, found)
        return found

    async def after(self, flow: Flow, result: Result) -> None:
        """What went wrong, or was taken back, has its consequence on record with it."""
        undone = flow.call is not None and flow.call.change is not None and bool(flow.call.change.undoes)
        if result.error is None and not undone:
            return
        if result.error is not None and result.error.code in _NO_TROUBLE:
            return
        try:
            earns = self._services.rules().earns
            for persona in earns if undone else [name for name in earns if name == flow.persona]:
                if (await self._last(persona)) > 0:
                    await self.step(persona, earns[persona])
        except CallError:
            return  # the policy or the ledger cannot be read just now: whoever wants a raise finds out

    async def _tell(self, persona: str, found: EarnedStep) -> None:
        before = await self._last(persona)
        if before != found.step:
            event = Adapted(persona=persona, step=found.step, before=before, of=STEPS, reason=found.reason)
            await self._services.ledger.do(Work(lambda view: view.emit(event)))

    async def _last(self, persona: str) -> int:
        rows = await self._services.ledger.backend.rows(
            Filter(persona=persona, kinds=("adapted",), newest_first=True, limit=1)
        )
        return int(parsed(rows[0])["step"]) if rows else 0

    async def _last_trouble(self, persona: str) -> int:
        rows = self._services.ledger.backend.rows
        own = await rows(Filter(persona=persona, kinds=_TROUBLE, newest_first=True, limit=1))
        undone = await rows(Filter(kinds=("undone",), newest_first=True, limit=1))
        return max([row.seq for row in (*own, *undone)], default=0)
