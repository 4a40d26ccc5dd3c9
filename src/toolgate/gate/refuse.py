"""Calls that never began are recorded too; floods of them are counted, not stored one by one."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.display import encodable
from toolgate.core.errors import CallError, Code, LedgerBroken, by_policy
from toolgate.core.event import Denied, Event, Flood, Limited, Rejected
from toolgate.core.finding import recorded
from toolgate.core.names import PERSONA
from toolgate.core.records import dataclass, field
from toolgate.gate.scan import mask_large, recorded_args
from toolgate.ledger.ledger import View, Work

if TYPE_CHECKING:
    from toolgate.gate.flow import Flow, Services

log = logging.getLogger("toolgate.gate")
ROWS_A_MINUTE = 30
ATTACKS_A_MINUTE = 600
"""Of refusals by a rule that no configuration lifts, such as those of a garden, and of paths out of a mount: whoever
looks into an attack wants each attempt, not their number."""
_SILENT = frozenset({Code.PENDING, Code.DENIED, Code.EXPIRED})
"""Recorded already, by the question's own events."""


@dataclass
class RefusalTally:
    """How many refusals of one persona were stored lately, and how many only counted."""

    most: int
    stored: deque[float] = field(default_factory=deque)
    skipped: int = 0
    since: int = 0

    def room(self) -> bool:
        now = time.monotonic()
        while self.stored and self.stored[0] < now - 60:
            self.stored.popleft()
        if len(self.stored) >= self.most:
            return False
        self.stored.append(now)
        return True


class Refusals:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._tallies: dict[tuple[str, bool], RefusalTally] = {}

    async def record(self, flow: Flow, error: CallError) -> int | None:
        """The journal row that holds the refusal; None if it is only counted or cannot be written."""
        if error.code in _SILENT or isinstance(error, LedgerBroken):
            return None
        persona = flow.persona if PERSONA.fullmatch(str(flow.persona)) else ""
        await mask_large(self._services, flow)
        return await self.keep(persona, lambda: self._event(flow, persona, error), _is_attack(error))

    async def keep(self, persona: str, make: Callable[[], Event], attack: bool = False) -> int | None:
        """Store one refusal, or only count it if too many came; also what a face refused before it was a call."""
        of = (persona if self._known(persona) else "", attack)
        tally = self._tallies.setdefault(of, RefusalTally(ATTACKS_A_MINUTE if attack else ROWS_A_MINUTE))
        if not tally.room():
            self._count(tally)
            return None
        before, since = tally.skipped, tally.since
        event = await self._write([*self._drain(persona, tally), make()], persona)
        if event is None:
            tally.skipped, tally.since = tally.skipped + before, since or tally.since
            self._count(tally)
        return event

    def _count(self, tally: RefusalTally) -> None:
        tally.since = tally.since or self._services.ledger.clock.now()
        tally.skipped += 1

    def _known(self, persona: str) -> bool:
        """Made-up names share one tally: a flood of names is a flood."""
        try:
            return persona in getattr(self._services.rules(), "personas", ())
        except CallError:  # the policy cannot be read just now
            return False

    async def close(self) -> None:
        for (persona, _), tally in self._tallies.items():
            await self._write(self._drain(persona, tally), None)

    def _drain(self, persona: str, tally: RefusalTally) -> list[Event]:
        if not tally.skipped:
            return []
        event = Flood(
            persona=persona, count=tally.skipped, since=tally.since, until=self._services.ledger.clock.now()
        )
        tally.skipped = tally.since = 0
        return [event]

    async def _write(self, events: list[Event], persona: str | None) -> int | None:
        """The number of the last one. Of a persona that has used up its bytes nothing is stored; it is counted."""
        if not events:
            return None
        allowance = self._services.ledger.allowance

        def decide(view: View) -> None:
            if persona is None or allowance.refusal(view.state, persona, view.now) is None:
                view.events.extend(events)

        work = Work(decide, durable=False)
        try:
            await self._services.ledger.do(work)
        except CallError as error:
            log.warning("a refusal could not be recorded: %s", error.message)
            return None
        return work.rows[-1].seq if work.rows else None

    def _event(self, flow: Flow, persona: str, error: CallError) -> Event:
        common: dict[str, Any] = {
            "call": flow.call_id, "persona": persona, "tool": flow.tool.name if flow.tool else "",
            "trail": {name: encodable(str(value)) for name, value in flow.trail.words().items()},
        }  # fmt: skip
        conversation = flow.trail.conversation
        if flow.call is not None:
            common["conversation"] = conversation
        data = error.data or {}
        if by_policy(error.code, data) and flow.call is not None and flow.tool is not None:
            return Denied(
                **common, rule=str(data.get("rule", "")), reason=error.message, digest=flow.call.digest,
                args=recorded_args(self._services, flow), code=error.code.value,
                findings=recorded(flow.scan.findings),
            )  # fmt: skip
        if error.code is Code.RATE_LIMITED:
            wait = round(float(data.get("retry_after_s", 0)) * 1000)
            return Limited(**common, limit=str(data.get("limit", error.message)), retry_ms=wait)
        message = encodable(str(self._services.redactor.redact(error.message, flow.hidden)))[:500]
        name = str(self._services.redactor.redact(flow.name)) if isinstance(flow.name, str) else ""
        named = encodable(name[:128])
        return Rejected(
            **common, code=error.code.value, error=message if flow.tool else f"{named}: {message}"
        )


def _is_attack(error: CallError) -> bool:
    rule = (error.data or {}).get("rule") if isinstance(error.data, Mapping) else ""
    return error.code is Code.OUTSIDE_MOUNT or str(rule or "").startswith(("hard:", "garden:"))
