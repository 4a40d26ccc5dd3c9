"""Journal events: one small tagged class per transition, one union of them all.

The envelope (call, persona, tool, conversation, ref, claim) becomes columns; everything else a class declares
becomes the canonical JSON body. Both are under the hash chain. A class never changes meaning: new facts get new
fields with defaults, new transitions get new classes. They are values: nothing changes one after it was made (not
`frozen` only because that doubles the cost of making two of them for every call).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, ClassVar

import orjson

from toolgate.core.canonical import canonical
from toolgate.core.decision import Verdict
from toolgate.core.eventshape import shape_of

Json = Mapping[str, Any]
_OURS = frozenset({str, int, bool, Verdict, orjson.Fragment})
"""Spelled as they are; a Fragment is JSON that is canonical already."""


@dataclass(slots=True, kw_only=True)
class Event:
    kind: ClassVar[str] = ""
    gate: ClassVar[bool] = True
    """Whether only the gate itself writes it; annotations by tools are the exception."""

    call: str = ""
    persona: str = ""
    tool: str = ""
    conversation: str = ""
    ref: str = ""
    """The question or grant it belongs to."""
    claim: str = ""
    """The idempotency scope it claims."""

    def body(self) -> dict[str, Any]:
        """What is not in the envelope and not the default."""
        shape = shape_of(type(self))
        values = shape.optional_of(self)
        out = dict(zip(shape.needed, shape.needed_of(self), strict=True))
        out.update(compress(zip(shape.optional, values, strict=True), values))
        for name, default in shape.other:
            if (value := getattr(self, name)) != default:
                out[name] = value
        return out

    def text(self) -> str:
        """The body as canonical JSON. Words and small numbers are ours; only values from outside need care."""
        spelled = self.body()
        if not _OURS.issuperset(map(type, spelled.values())):
            for name in shape_of(type(self)).foreign:
                value = spelled.get(name)
                if value is not None and type(value) not in _OURS:
                    spelled[name] = orjson.Fragment(canonical(value))
        try:
            return orjson.dumps(spelled, option=orjson.OPT_SORT_KEYS).decode()
        except orjson.JSONEncodeError:  # a broken character in a message must not keep an outcome unrecorded
            return canonical(_mended(self.body()))


@dataclass(slots=True, kw_only=True)
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
    channels: list[str] = field(default_factory=list)
    again: str = ""
    trail: Json = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    """Arguments that the preview shows already."""


@dataclass(slots=True, kw_only=True)
class Approved(Event):
    """A human approved exactly one digest, once."""

    kind: ClassVar[str] = "approved"
    digest: str
    by: str
    channel: str
    expires: int
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Refused(Event):
    """A human refused."""

    kind: ClassVar[str] = "refused"
    digest: str
    by: str
    channel: str
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Expired(Event):
    """A question, an unused approval or a grant ran out of time."""

    kind: ClassVar[str] = "expired"
    what: str


@dataclass(slots=True, kw_only=True)
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


@dataclass(slots=True, kw_only=True)
class Revoked(Event):
    """A grant was taken back."""

    kind: ClassVar[str] = "revoked"
    by: str
    channel: str
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Denied(Event):
    """Policy refused the call."""

    kind: ClassVar[str] = "denied"
    rule: str
    reason: str
    digest: str = ""
    args: Json = field(default_factory=dict)
    trail: Json = field(default_factory=dict)
    code: str = "not_allowed"
    findings: list[Json] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Rejected(Event):
    """The call was malformed: unknown tool, wrong arguments, a path out of its mount."""

    kind: ClassVar[str] = "rejected"
    code: str
    error: str
    trail: Json = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Limited(Event):
    """A limit refused the call."""

    kind: ClassVar[str] = "limited"
    limit: str
    retry_ms: int
    trail: Json = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Flood(Event):
    """Refusals that came too fast to be stored one by one, counted."""

    kind: ClassVar[str] = "flood"
    count: int
    since: int
    until: int


@dataclass(slots=True, kw_only=True)
class Started(Event):
    """From here on the effect may have happened."""

    kind: ClassVar[str] = "started"
    digest: str
    definition: str
    owner: str
    args: Json
    rule: str
    decision: str
    reason: str = ""
    effectful: bool = False
    change: Sequence[Json] = ()
    trail: Json = field(default_factory=dict)
    undoes: Sequence[int] = ()
    request: str = ""
    """With a claim and a Change: the digest without the Change, so that a repeat is known after files have changed."""
    findings: Sequence[Json] = ()

    def body(self) -> dict[str, Any]:
        """What Event.body says, spelled out: one is made for every call."""
        out: dict[str, Any] = {
            "digest": self.digest, "definition": self.definition, "owner": self.owner, "args": self.args,
            "rule": self.rule, "decision": self.decision,
        }  # fmt: skip
        if self.reason:
            out["reason"] = self.reason
        if self.effectful:
            out["effectful"] = True
        if self.change:
            out["change"] = self.change
        if self.trail:
            out["trail"] = self.trail
        if self.undoes:
            out["undoes"] = self.undoes
        if self.request:
            out["request"] = self.request
        if self.findings:
            out["findings"] = self.findings
        return out


@dataclass(slots=True, kw_only=True)
class Committed(Event):
    """It happened."""

    kind: ClassVar[str] = "committed"
    summary: str = ""
    duration_us: int = 0
    tokens: int = 0
    truncated: bool = False
    cached: bool = False
    result: Any = None
    result_json: str = ""
    """Instead of `result`, for one that JSON can hold and canonical JSON cannot, such as a very large integer."""
    artifacts: Sequence[Json] = ()
    reconciled: str = ""

    def body(self) -> dict[str, Any]:
        """What Event.body says, spelled out: one is made for nearly every call."""
        out: dict[str, Any] = {}
        if self.summary:
            out["summary"] = self.summary
        if self.duration_us:
            out["duration_us"] = self.duration_us
        if self.tokens:
            out["tokens"] = self.tokens
        if self.truncated:
            out["truncated"] = True
        if self.cached:
            out["cached"] = True
        if self.result is not None:
            out["result"] = self.result
        if self.result_json:
            out["result_json"] = self.result_json
        if self.artifacts:
            out["artifacts"] = self.artifacts
        if self.reconciled:
            out["reconciled"] = self.reconciled
        return out


@dataclass(slots=True, kw_only=True)
class Failed(Event):
    """It did not happen, or the tool says it failed."""

    kind: ClassVar[str] = "failed"
    code: str
    error: str
    duration_us: int = 0
    reconciled: str = ""


@dataclass(slots=True, kw_only=True)
class Unknown(Event):
    """Whether it happened cannot be proven; it is never run again by itself."""

    kind: ClassVar[str] = "unknown"
    code: str
    error: str
    duration_us: int = 0
    reconciled: str = ""


@dataclass(slots=True, kw_only=True)
class Resolved(Event):
    """Somebody who knows said how an unknown call ended."""

    kind: ClassVar[str] = "resolved"
    outcome: str
    by: str
    channel: str
    reason: str = ""
    digest: str = ""


@dataclass(slots=True, kw_only=True)
class Undone(Event):
    """The effect of an earlier event was taken back."""

    kind: ClassVar[str] = "undone"
    event: int
    by: str


@dataclass(slots=True, kw_only=True)
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


@dataclass(slots=True, kw_only=True)
class Requested(Event):
    """A program in the sandbox asked for something on the network, and was let through or not."""

    kind: ClassVar[str] = "requested"
    method: str
    url: str
    allowed: bool
    status: int = 0
    reason: str = ""
    """Why it was refused or failed."""
    address: str = ""
    sent: int = 0
    received: int = 0
    injected: list[str] = field(default_factory=list)
    """Names of the secrets that were put in on the way."""


@dataclass(slots=True, kw_only=True)
class Elicited(Event):
    """A server asked the human something during a call: what, and whether it was told. Never what it was told."""

    kind: ClassVar[str] = "elicited"
    server: str
    action: str
    message: str = ""
    fields: list[str] = field(default_factory=list)
    """Names of what it wanted to know."""
    reason: str = ""
    """Why nobody was asked."""


@dataclass(slots=True, kw_only=True)
class Paused(Event):
    """Everything a persona does (or everybody) stops at once."""

    kind: ClassVar[str] = "paused"
    by: str
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Resumed(Event):
    """A pause was lifted."""

    kind: ClassVar[str] = "resumed"
    by: str


@dataclass(slots=True, kw_only=True)
class Configured(Event):
    """The first call started under a policy that the journal had not seen last."""

    kind: ClassVar[str] = "configured"
    policy: str
    by: str


@dataclass(slots=True, kw_only=True)
class Rotated(Event):
    """Rows after this one are sealed with another key version."""

    kind: ClassVar[str] = "rotated"
    version: int
    by: str


@dataclass(slots=True, kw_only=True)
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
    Failed, Unknown, Resolved, Undone, Noted, Requested, Elicited, Paused, Resumed, Configured, Rotated,
    Vaulted,
)  # fmt: skip
BY_KIND: dict[str, type[Event]] = {event.kind: event for event in EVENTS}
SETTLED = frozenset({"committed", "failed", "unknown"})


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list | tuple) else value
