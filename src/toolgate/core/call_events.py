"""Journal events of a call: refused before it began, begun, how it ended, and what happened on the way. And what every journal
event is: an envelope that becomes columns, and a body that becomes canonical JSON.

The envelope (call, persona, tool, conversation, ref, claim) becomes columns; everything else a class declares
becomes the canonical JSON body. Both are under the hash chain. A class never changes meaning: new facts get new
fields with defaults, new transitions get new classes. They are values: nothing changes one after it was made (not
`frozen` only because that doubles the cost of making two of them for every call). A `BodyShape` reads
many values of one at a time, for the same reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import compress
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

from toolgate.core.canonical import canonical
from toolgate.core.decision import Verdict
from toolgate.core.errors import InvalidArgs
from toolgate.core.records import MISSING, dataclass, field, fields_of

Json = Mapping[str, Any]


@cache
def _ours() -> frozenset[type]:
    """Spelled as they are; a Fragment is JSON that is canonical already."""
    import orjson

    return frozenset({str, int, bool, Verdict, orjson.Fragment})


E = TypeVar("E")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def event(kind: type[E]) -> type[E]:
    return dataclass(slots=True, kw_only=True)(kind)


@event
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
        if "orjson" not in sys.modules:  # a short command does without it
            with suppress(InvalidArgs):
                return canonical(
                    {name: str(one) if type(one) is Verdict else one for name, one in spelled.items()}
                )
        import orjson

        ours = _ours()
        if not ours.issuperset(map(type, spelled.values())):
            for name in shape_of(type(self)).foreign:
                value = spelled.get(name)
                if value is not None and type(value) not in ours:
                    spelled[name] = orjson.Fragment(canonical(value))
        try:
            return orjson.dumps(spelled, option=orjson.OPT_SORT_KEYS).decode()
        except orjson.JSONEncodeError:  # a broken character in a message must not keep an outcome unrecorded
            return canonical(_mended(self.body()))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list | tuple) else value


_PLAIN = frozenset({"str", "int", "bool"})


class BodyShape:
    def __init__(self, event: type[Any]) -> None:
        envelope = fields_of(event.__mro__[-2])  # what every event has
        body = {name: said for name, said in fields_of(event).items() if name not in envelope}
        defaults = [(name, said.value()) for name, said in body.items()]
        self.needed = tuple(name for name, default in defaults if default is MISSING)
        self.optional = tuple(name for name, default in defaults if _empty(default))
        """Left out where they are empty, which is their default."""
        self.other = tuple(
            (name, default) for name, default in defaults if default is not MISSING and not _empty(default)
        )
        self.foreign = frozenset(name for name, said in body.items() if said.hint not in _PLAIN)
        """Values from outside, whose spelling needs care."""
        self.needed_of, self.optional_of = _getter(self.needed), _getter(self.optional)


_shapes: dict[type[Any], BodyShape] = {}


def shape_of(event: type[Any]) -> BodyShape:
    found = _shapes.get(event)
    if found is None:
        found = _shapes[event] = BodyShape(event)
    return found


def _empty(default: Any) -> bool:
    return default is not MISSING and default is not None and not default


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)


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
