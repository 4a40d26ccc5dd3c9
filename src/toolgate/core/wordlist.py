"""A list of words: seen at a glance, it holds no number, no path and no name. Most lists that tools take are one."""

from __future__ import annotations

_WORD = frozenset({str})


def is_words(value: object) -> bool:
    return type(value) is list and _WORD.issuperset(map(type, value))
