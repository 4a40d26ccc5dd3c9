"""What surrounds every page: project, database, state of the chain, how many questions are open."""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.core.errors import CallError
from toolgate.facade import Gate
from toolgate.ledger.verify import Report

AUTOMATIC = 50_000
"""Up to so many events a page may have the chain verified by itself."""
AT_ONCE = 2_000
"""Up to so many before the page is shown."""
FRESH = 600.0


@dataclass
class Verified:
    """The last verification of this server."""

    report: Report | None = None
    at: int = 0
    running: bool = False


@dataclass
class Frame:
    project: str
    database: str
    events: int
    open: int
    running: int
    personas: list[str]
    paused: dict[str, str]
    chain: Verified
    now: int
    trouble: str = ""
    """Why the policy cannot be read, if it cannot."""


async def frame(gate: Gate, chain: Verified) -> Frame:
    state = await gate.ledger_state()
    paused, now = await gate.services.ledger.look(lambda state, now: (dict(state.paused), now))
    trouble = ""
    try:
        personas = sorted(gate.policy.personas)
    except CallError as error:
        personas, trouble = sorted(gate.config.personas), error.message
    return Frame(
        gate.root.name or str(gate.root), str(state["backend"]), int(state["events"]), int(state["open_questions"]),
        int(state["running"]), personas, paused, chain, now, trouble,
    )  # fmt: skip
