"""Calls that cannot be running any more, although the journal says so and their owner lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import CallError

if TYPE_CHECKING:
    from toolgate.gate.flow import Services
    from toolgate.ledger.state import Live

SLACK = 60.0
"""Seconds beyond a call's time in which its process finds out what happened, and says so."""


def ends_at(services: Services, item: Live) -> int:
    """When it has ended at the latest: its time twice, because finding out what happened may take as long again."""
    try:
        seconds = services.timeouts.of(services.registry.resolve(item.row.tool))
    except CallError:  # another process has the tool
        seconds = services.timeouts.most
    return item.row.at + round((2 * seconds + SLACK) * SECOND)


def still_runs(services: Services, item: Live, now: int) -> str:
    """Why it must be taken for running, as the fix of an error; empty if it runs no more."""
    if item.owner == services.owners.me:
        return "wait until it has ended" if services.unrecorded.knows(item.row.call) else ""
    until = ends_at(services, item)
    if until <= now:
        return ""
    return f"wait until it has ended, or until its process is gone; at the latest at {iso(until)} it can be resolved"
