"""Journal events: one small tagged class per transition, one union of them all. Here are those of asking a human (the question,
its answers, and answers that last) and those that belong to no step of a call: annotations, and what a human does to the gate itself.
"""

from __future__ import annotations

from typing import Any, ClassVar

from toolgate.core.call_events import (
    Committed,
    Denied,
    Elicited,
    Event,
    Failed,
    Flood,
    Json,
    Limited,
    Rejected,
    Requested,
    Resolved,
    Started,
    Undone,
    Unknown,
    event,
)
from toolgate.core.records import field

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


@event
class Asked(Event):
    """A question to a human was opened."""

    kind: ClassVar[str] = "asked"
    digest: str
    definition: str
    args: Json
    effects: Json
    rule: str
    rights: str
    reason: str
    expires: int
    preview: str = ""
    undoable: bool = False
    unkept: str = ""
    """Why it cannot be undone, where it otherwise could."""
    channels: list[str] = field(default_factory=list)
    again: str = ""
    trail: Json = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    """Arguments that the preview shows already."""
    secrets: Json = field(default_factory=dict)
    """Secrets of the vault that are named in what is shown, each with its fingerprint."""
    shown: Json = field(default_factory=dict)
    """Arguments and preview as a human sees them, where that is more than is recorded."""
    whole: bool = False
    """Whether a human is shown all of it. A question of a version that masked by guesses does not say so."""
    request: str = ""
    """With long arguments: the digest without the Change, by which the same request is known again."""


@event
class Approved(Event):
    """A human approved exactly one digest, once."""

    kind: ClassVar[str] = "approved"
    digest: str
    by: str
    channel: str
    expires: int
    reason: str = ""


@event
class Refused(Event):
    """A human refused."""

    kind: ClassVar[str] = "refused"
    digest: str
    by: str
    channel: str
    reason: str = ""


@event
class Expired(Event):
    """A question, an unused approval or a grant ran out of time."""

    kind: ClassVar[str] = "expired"
    what: str


@event
class Granted(Event):
    """A human gave a scoped, expiring answer to calls of one kind."""

    kind: ClassVar[str] = "granted"
    by: str
    channel: str
    expires: int
    definition: str
    rights: str
    args: Json = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    only_conversation: str = ""
    max_uses: int = 0
    question: str = ""
    reason: str = ""
    takes: list[str] = field(default_factory=list)
    """The arguments of the call it was given for: those that `args` and `paths` do not limit may be anything."""
    effects: Json = field(default_factory=dict)
    """Of the call it was given for: it covers no call that has more. Older grants cover what their tool always does."""


@event
class Revoked(Event):
    """A grant was taken back."""

    kind: ClassVar[str] = "revoked"
    by: str
    channel: str
    reason: str = ""


@event
class Noted(Event):
    """An annotation by a tool (`events.log`). It can never pose as a gate event."""

    kind: ClassVar[str] = "noted"
    gate: ClassVar[bool] = False
    type: str
    op: str = ""
    file_path: str = ""
    section_anchor: str = ""
    before_hash: str = ""
    after_hash: str = ""
    rationale: str = ""
    evidence_refs: list[str] = field(default_factory=list)
    lint: Json = field(default_factory=dict)
    trail: Json = field(default_factory=dict)
    data: Json = field(default_factory=dict)


@event
class Paused(Event):
    """Everything a persona does (or everybody) stops at once."""

    kind: ClassVar[str] = "paused"
    by: str
    reason: str = ""


@event
class Resumed(Event):
    """A pause was lifted."""

    kind: ClassVar[str] = "resumed"
    by: str


@event
class Configured(Event):
    """The first call started under a policy that the journal had not seen last."""

    kind: ClassVar[str] = "configured"
    policy: str
    by: str


@event
class Adapted(Event):
    """What a persona's record has earned it has changed: its own limits are raised by `step` of `of` from here on."""

    kind: ClassVar[str] = "adapted"
    step: int
    before: int
    of: int
    reason: str


@event
class Rotated(Event):
    """Rows after this one are sealed with another key version."""

    kind: ClassVar[str] = "rotated"
    version: int
    by: str


@event
class Archived(Event):
    """The oldest rows were moved into a file, in the transaction that wrote this. The journal goes on after `last`."""

    kind: ClassVar[str] = "archived"
    first: int
    last: int
    hash: str
    """Of the row `last`: the first one that is left links to it."""
    file: str
    sha256: str
    """Of the file."""
    by: str


@event
class Vaulted(Event):
    """A human put a secret into the vault or took one out. Its name, never its value."""

    kind: ClassVar[str] = "vaulted"
    secret: str
    op: str
    """`set`, `replace` or `remove`."""
    by: str
    channel: str
    hosts: list[str] = field(default_factory=list)
    reveal: bool = False


EVENTS: tuple[type[Event], ...] = (
    Asked, Approved, Refused, Expired, Granted, Revoked, Denied, Rejected, Limited, Flood, Started, Committed,
    Failed, Unknown, Resolved, Undone, Noted, Requested, Elicited, Paused, Resumed, Configured, Adapted, Rotated,
    Vaulted, Archived,
)  # fmt: skip
BY_KIND: dict[str, type[Event]] = {each.kind: each for each in EVENTS}
SETTLED = frozenset({"committed", "failed", "unknown"})
