"""Events of asking a human: the question, its answers, and answers that last."""

from __future__ import annotations

from typing import Any, ClassVar

from toolgate.core.events.base import Event, Json, event
from toolgate.core.records import field


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
