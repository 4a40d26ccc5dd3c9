"""What every journal event is: an envelope that becomes columns, and a body that becomes canonical JSON.

The envelope (call, persona, tool, conversation, ref, claim) becomes columns; everything else a class declares
becomes the canonical JSON body. Both are under the hash chain. A class never changes meaning: new facts get new
fields with defaults, new transitions get new classes. They are values: nothing changes one after it was made (not
`frozen` only because that doubles the cost of making two of them for every call).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import compress
from typing import Any, ClassVar, TypeVar, dataclass_transform

import orjson

from toolgate.core.canonical import canonical
from toolgate.core.decision import Verdict
from toolgate.core.events.shape import shape_of

Json = Mapping[str, Any]
_OURS = frozenset({str, int, bool, Verdict, orjson.Fragment})
"""Spelled as they are; a Fragment is JSON that is canonical already."""


E = TypeVar("E")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def event(kind: type[E]) -> type[E]:
    """A dataclass that takes its comparison from Event: writing one for each of thirty kinds takes longer than opening
    a ledger."""
    return dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)(kind)


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

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, one.name) == getattr(other, one.name) for one in fields(self)
        )

    def __repr__(self) -> str:
        said = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self))
        return f"{type(self).__name__}({said})"

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


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list | tuple) else value
