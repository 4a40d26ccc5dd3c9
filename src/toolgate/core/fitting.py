"""Shortening results to their budget: whole items are dropped from the end, and the result says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgate.core.canonical import compact

RESERVE = 300
"""Characters kept free for the words that say what was cut."""
_BETWEEN = 60


def size(value: Any) -> int:
    """Characters of JSON."""
    return len(compact(value))


def leading(items: Sequence[Any], room: int) -> int:
    """How many of the first ones fit, with a comma each."""
    for index, item in enumerate(items):
        room -= size(item) + 1
        if room < 0:
            return index
    return len(items)


def shorten(data: dict[str, Any], key: str, room: int, inner: str = "") -> int:
    """Drop items of the list `key` from the end until the whole fits; how many were dropped or cut.

    With `inner`, the first that does not fit is kept as far as a part of its own list `inner` fits.
    """
    items = data[key]
    left = room - size({**data, key: []})
    kept = leading(items, left)
    if kept == len(items):
        return 0
    found = list(items[:kept])
    if inner and items[kept].get(inner):
        part = dict(items[kept])
        left -= sum(size(item) + 1 for item in found) + 1
        shorten(part, inner, left)
        if part[inner] and size(part) <= left:
            found.append(part)
    data[key] = found
    return len(items) - kept


def head(text: str, room: int) -> str:
    """As much of the start of a text as its JSON has room for."""
    wanted = size(text)
    while text and wanted > room:
        text = text[: max(min(len(text) * room // wanted, len(text) - 1), 0)]
        wanted = size(text)
    return text


def ends(text: str, room: int) -> str:
    """The start and more of the end of what a program printed, whose last lines say how it went; whole lines, if there are
    any, and how much stood between them."""
    if size(text) <= room:
        return text
    room = max(room - _BETWEEN, 0)
    first = head(text, room // 4)
    last = head(text[::-1], room - size(first))[::-1]
    first = first[: first.rfind("\n") + 1] or first
    last = last[last.find("\n") + 1 :] or last
    missing = len(text) - len(first) - len(last)
    joint = "" if first.endswith("\n") else "\n"
    return f"{first}{joint}… [{missing:,} characters left out] …\n{last}"
