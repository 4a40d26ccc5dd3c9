"""How large arguments may be. One walk tells, before anybody looks at what they say; it goes no further than the bounds.

A tool's author gets bounds without asking: `tool_types.py` puts them on every text, list and object of a type that has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.core.records import dataclass

MAX_TEXT = 8 << 20
"""Characters in one text of a tool whose author said nothing about it."""
MAX_ITEMS = 10_000
"""Items of a list, or entries of an object, likewise."""
MAX_KEY = 4096
"""Characters in the name of an entry: as many as a path may have."""
_WEIGHT = 64
"""What a value weighs beside its characters: looking at a number takes as long as reading so many letters."""
_FEW, _SHORT, _PLAIN = 16, 1000, 1 << 64
_LISTS = frozenset({list, tuple, set, frozenset})


@dataclass(frozen=True, slots=True)
class Bounds:
    size: int = 8 << 20
    """Characters in all texts and keys together."""
    values: int = 50_000
    """Values at any depth: numbers, texts, lists, objects and their keys."""
    depth: int = 64


def measure(raw: Mapping[str, Any], bounds: Bounds) -> int:
    """About how much work it is to look at it. Raises where it is more than anybody will look at."""
    if type(raw) is dict and len(raw) <= _FEW and (short := _flat(raw)) is not None:
        return short
    room, left, depth, weight = bounds.size, bounds.values, 0, 0
    level: list[Any] = [raw]
    while level:
        if depth > bounds.depth:
            raise InvalidArgs(
                f"the arguments are nested deeper than {bounds.depth} levels", "flatten the value"
            )
        below: list[Any] = []
        for one in level:
            kind = type(one)
            if kind is str or kind is bytes:
                room -= len(one)
            elif kind is dict or isinstance(one, Mapping):
                left -= 2 * len(one)
                if left >= 0:
                    room -= _keys(one)
                    below.extend(one.values())
            elif kind in _LISTS:
                left -= len(one)
                if left >= 0:
                    below.extend(one)
            elif kind is int and one.bit_length() > 64:
                room -= one.bit_length()
            weight += _WEIGHT
            if room < 0 or left < 0:
                raise _too_large(bounds, room < 0)
        level = below
        depth += 1
    return weight + bounds.size - room


def _flat(raw: dict[Any, Any]) -> int | None:
    """What nearly every call is: a few words and numbers. None where it must be looked at more closely."""
    size = 0
    for key, value in raw.items():
        kind = type(value)
        if kind is str:
            size += len(value)
        elif kind is int:
            if not -_PLAIN < value < _PLAIN:
                return None
        elif kind is not bool and value is not None:
            return None
        if type(key) is not str or len(key) > MAX_KEY:
            return None
    return size if size <= _SHORT else None


def _keys(value: Mapping[Any, Any]) -> int:
    size = 0
    for key in value:
        if isinstance(key, str):
            size += len(key)
            if len(key) > MAX_KEY:
                raise TooLarge(
                    f"the name {key[:80]!r}… has {len(key):,} characters, the limit is {MAX_KEY:,}",
                    "use a shorter name",
                )
    return size


def _too_large(bounds: Bounds, text: bool) -> TooLarge:
    if text:
        return TooLarge(
            f"the arguments have more than {bounds.size:,} characters, which is the limit",
            "send less at once",
        )
    return TooLarge(
        f"the arguments hold more than {bounds.values:,} values, which is the limit", "send less at once"
    )
