"""Events that belong to no step of a call: annotations, and what a human does to the gate itself."""

from __future__ import annotations

from typing import ClassVar

from toolgate.core.events.base import Event, Json, event
from toolgate.core.records import field


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
