"""How the body of one kind of event is read: many values at a time, for two events are made for every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from operator import attrgetter
from typing import Any

_PLAIN = frozenset({"str", "int", "bool"})


class BodyShape:
    def __init__(self, event: type[Any]) -> None:
        envelope = {item.name for item in fields(event.__mro__[-2])}  # what every event has
        body = [(item, _default(item)) for item in fields(event) if item.name not in envelope]
        self.needed = tuple(item.name for item, default in body if default is MISSING)
        self.optional = tuple(item.name for item, default in body if _empty(default))
        """Left out where they are empty, which is their default."""
        self.other = tuple(
            (item.name, default) for item, default in body if default is not MISSING and not _empty(default)
        )
        self.foreign = frozenset(item.name for item, _ in body if item.type not in _PLAIN)
        """Values from outside, whose spelling needs care."""
        self.needed_of, self.optional_of = _getter(self.needed), _getter(self.optional)


_shapes: dict[type[Any], BodyShape] = {}


def shape_of(event: type[Any]) -> BodyShape:
    found = _shapes.get(event)
    if found is None:
        found = _shapes[event] = BodyShape(event)
    return found


def _default(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return item.default_factory() if item.default_factory is not MISSING else MISSING


def _empty(default: Any) -> bool:
    return default is not MISSING and default is not None and not default


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)
