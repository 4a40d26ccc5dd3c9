"""Shortening results to their budget: whole items are dropped from the end, and the result says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

RESERVE = 300
"""Characters kept free for the words that say what was cut."""


def size(value: Any) -> int:
    """Characters of JSON."""
    return len(orjson.dumps(value).decode())


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
