"""Events of a call: refused before it began, begun, how it ended, and what happened on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from toolgate.core.events.base import Event, Json, event
from toolgate.core.records import field


@event
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


@event
class Rejected(Event):
    """The call was malformed: unknown tool, wrong arguments, a path out of its mount."""

    kind: ClassVar[str] = "rejected"
    code: str
    error: str
    trail: Json = field(default_factory=dict)


@event
class Limited(Event):
    """A limit refused the call."""

    kind: ClassVar[str] = "limited"
    limit: str
    retry_ms: int
    trail: Json = field(default_factory=dict)


@event
class Flood(Event):
    """Refusals that came too fast to be stored one by one, counted."""

    kind: ClassVar[str] = "flood"
    count: int
    since: int
    until: int


@event
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
    writes: Sequence[str] = ()
    """Its effects as these arguments have them: limits count by them."""
    change: Sequence[Json] = ()
    trail: Json = field(default_factory=dict)
    undoes: Sequence[int] = ()
    request: str = ""
    """With a claim and a Change: the digest without the Change, so that a repeat is known after files have changed."""
    findings: Sequence[Json] = ()
    kept: Json = field(default_factory=dict)
    """`bytes` that it leaves in mounts where nothing is ever deleted: limits count them."""

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
        if self.writes:
            out["writes"] = self.writes
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
        if self.kept:
            out["kept"] = self.kept
        return out


@event
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
    already: Sequence[str] = ()
    """Directories that it would have made, had they not been there by then: undo leaves them."""
    same: str = ""
    """For a call of a run: a hash of the result, by which a repeat is known."""

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
        if self.already:
            out["already"] = self.already
        if self.same:
            out["same"] = self.same
        return out


@event
class Failed(Event):
    """It did not happen, or the tool says it failed."""

    kind: ClassVar[str] = "failed"
    code: str
    error: str
    duration_us: int = 0
    reconciled: str = ""


@event
class Unknown(Event):
    """Whether it happened cannot be proven; it is never run again by itself."""

    kind: ClassVar[str] = "unknown"
    code: str
    error: str
    duration_us: int = 0
    reconciled: str = ""


@event
class Resolved(Event):
    """Somebody who knows said how an unknown call ended."""

    kind: ClassVar[str] = "resolved"
    outcome: str
    by: str
    channel: str
    reason: str = ""
    digest: str = ""


@event
class Undone(Event):
    """The effect of an earlier event was taken back."""

    kind: ClassVar[str] = "undone"
    event: int
    by: str


@event
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


@event
class Elicited(Event):
    """A server asked the human something, or wanted a model outside any call: what, and whether it was told. Never
    what it was told."""

    kind: ClassVar[str] = "elicited"
    server: str
    action: str
    message: str = ""
    fields: list[str] = field(default_factory=list)
    """Names of what it wanted to know."""
    reason: str = ""
    """Why nobody was asked."""
