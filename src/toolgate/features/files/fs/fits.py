"""The results of looking and reading within their budget: the start stays, and the result says how to go on."""

from __future__ import annotations

from typing import Any

from toolgate.core.fitting import RESERVE, head, leading, shorten, size


def fit_read(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    if "content" in data:
        text, count = _lines(data["content"], room - size({**data, "content": ""}))
        told = _next(1, count, data["lines"], data["content"], text)
        return {**data, "content": text, "truncated": True, "next": told}
    slices = data["range_slices"]
    shorten(data, "range_slices", room)
    kept = data["range_slices"]
    first = slices[len(kept)]
    start, end = first["start"], first["end"]
    text, count = _lines(first["content"], room - size(data) - 80)
    if text:
        data["range_slices"] = [*kept, {**first, "end": start + max(count, 1) - 1, "content": text}]
    return {**data, "truncated": True, "next": _next(start, count, end, first["content"], text)}


def _lines(content: str, room: int) -> tuple[str, int]:
    """The first lines, as many as fit, and how many; of one that does not fit by itself the start, which counts as none."""
    lines = content.split("\n")
    kept = leading(lines, room)
    if kept:
        return "".join(line + "\n" for line in lines[:kept]), kept
    return head(lines[0], room), 0


def _next(start: int, count: int, end: int | None, content: str, text: str) -> str:
    """How to go on after `count` lines. A line that is too long never fits: it is not asked for again."""
    told = ""
    if count == 0 and text:
        more = len(content.partition("\n")[0]) - len(text)
        told = f"line {start} has {more:,} more characters: code.search shows the part around a match"
        count = 1
        if end is not None and start >= end:
            return told
        told += "; "
    start += count
    return f"{told}go on with ranges [[{start}, {start + 499 if end is None else max(min(end, start + 499), start)}]]"


def fit_list(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    if "details" in data and size(data) > room:
        kept = leading([*zip(data["entries"], data["details"], strict=True)], room - 300)
        data["entries"], data["details"] = data["entries"][:kept], data["details"][:kept]
    else:
        shorten(data, "entries", room)
    told = "not all fit the budget: give a `glob` or a directory in it"
    return {**data, "count": len(data["entries"]), "truncated": True, "next": told}


def fit_find(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    shorten(data, "files", room - RESERVE)
    told = "not all fit the budget: give a narrower `pattern` or `base`"
    return {**data, "count": len(data["files"]), "truncated": True, "next": told}
