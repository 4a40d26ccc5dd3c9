"""Journal events: one small tagged class per transition, one union of them all."""

from __future__ import annotations

from toolgate.core.events.base import Event
from toolgate.core.events.calls import (
    Committed,
    Denied,
    Elicited,
    Failed,
    Flood,
    Limited,
    Rejected,
    Requested,
    Resolved,
    Started,
    Undone,
    Unknown,
)
from toolgate.core.events.consent import Approved, Asked, Expired, Granted, Refused, Revoked
from toolgate.core.events.house import Adapted, Archived, Configured, Noted, Paused, Resumed, Rotated, Vaulted

__all__ = [
    "BY_KIND",
    "EVENTS",
    "SETTLED",
    "Adapted",
    "Approved",
    "Archived",
    "Asked",
    "Committed",
    "Configured",
    "Denied",
    "Elicited",
    "Event",
    "Expired",
    "Failed",
    "Flood",
    "Granted",
    "Limited",
    "Noted",
    "Paused",
    "Refused",
    "Rejected",
    "Requested",
    "Resolved",
    "Resumed",
    "Revoked",
    "Rotated",
    "Started",
    "Undone",
    "Unknown",
    "Vaulted",
]

EVENTS: tuple[type[Event], ...] = (
    Asked, Approved, Refused, Expired, Granted, Revoked, Denied, Rejected, Limited, Flood, Started, Committed,
    Failed, Unknown, Resolved, Undone, Noted, Requested, Elicited, Paused, Resumed, Configured, Adapted, Rotated,
    Vaulted, Archived,
)  # fmt: skip
BY_KIND: dict[str, type[Event]] = {event.kind: event for event in EVENTS}
SETTLED = frozenset({"committed", "failed", "unknown"})
