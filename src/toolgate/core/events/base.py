"""What every journal event is: an envelope that becomes columns, and a body that becomes canonical JSON.

The envelope (call, persona, tool, conversation, ref, claim) becomes columns; everything else a class declares
becomes the canonical JSON body. Both are under the hash chain. A class never changes meaning: new facts get new
fields with defaults, new transitions get new classes. They are values: nothing changes one after it was made (not
`frozen` only because that doubles the cost of making two of them for every call). A `BodyShape` reads
many values of one at a time, for the same reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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
