"""Finding matching lines in one file's content, in process, with RE2: linear in time, whatever the pattern."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from toolgate.workspace.search.query import Hit, Match, Query, make_match
from toolgate.workspace.search.subset import Plan, plan

try:
    import re2
except ImportError:  # without the extra `code`, rg does all of it
    re2 = None

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Unequal(Exception):
    """This content could mean something else to rg; only rg may answer for it."""


class TooMuch(Exception):
    """More than the engine in process should do."""


class Matcher:
    """A pattern that RE2 and rg agree on."""

    def __init__(self, made: Plan, case_sensitive: bool) -> None:
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.case_sensitive = case_sensitive
        self._regex: Any = re2.compile(made.source, options)
        self._ascii_only = made.ascii_only

    def agrees(self, data: bytes) -> bool:
        """Whether rg finds the same in all of it."""
        if data.isascii():
            return True
        if self._ascii_only:
            return False
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    def hits(self, data: bytes) -> Iterator[tuple[Hit, int, int]]:
        """Every matching line, with where it begins and ends."""
        if not data:
            return
        end_of_text = len(data) - data.endswith(b"\n")
        at, line, counted = 0, 1, 0
        while at <= end_of_text:
            found = self._regex.search(data, at, end_of_text)
            if found is None:
                return
            start, end = found.span()
            first = data.rfind(b"\n", 0, start) + 1
            last = data.find(b"\n", start, end_of_text)
            last = end_of_text if last < 0 else last
            line += data.count(b"\n", counted, first)
            counted = first
            yield Hit(line, start - first, end - first), first, last
            at = last + 1


@lru_cache(maxsize=64)
def matcher(pattern: str, case_sensitive: bool) -> Matcher | None:
    """None where only rg may answer."""
    made = plan(pattern, case_sensitive) if re2 is not None else None
    if made is None:
        return None
    try:
        return Matcher(made, case_sensitive)
    except re2.error:
        return None


def search_content(
    matched: Matcher,
    data: bytes,
    file: str,
    query: Query,
    room: int,
    told: int = -1,
    most: int = sys.maxsize,
) -> tuple[list[Match], int]:
    """The first matches of one file, as many as there is room for, and how many lines match in all.

    `told` is how many rg has counted: what comes after so many, or has no room, is not looked at. Where the two agree on ASCII alone,
    they agree on lines that are; and if those are as many as rg has found, there is no other. More than `most` are too
    much.
    """
    if data.startswith(_MARKS):
        raise Unequal  # before looking for NUL: UTF-16 is full of them, and rg reads it
    if b"\0" in data:
        return [], 0  # binary
    whole = matched.agrees(data)
    if not whole and told < 0:
        raise Unequal
    found: list[Match] = []
    total = 0
    for hit, first, last in matched.hits(data):
        if not whole and not data[first:last].isascii():
            continue
        total += 1
        if total > most:
            raise TooMuch
        if len(found) < room:
            lines = _Around(data, hit.line, first, last)
            found.append(make_match(file, hit, lines.at, query.context_lines))
        if total == told or (whole and told >= 0 and len(found) == room):
            break
    if not whole and total != told:
        raise Unequal
    return found, total


class _Around:
    """The lines around one line, found from where it stands instead of splitting the file."""

    def __init__(self, data: bytes, line: int, first: int, last: int) -> None:
        self._data = data
        self._line = line
        self._spans = {line: (first, last)}

    def at(self, number: int) -> bytes | None:
        span = self._span(number)
        return None if span is None else self._data[span[0] : span[1]]

    def _span(self, number: int) -> tuple[int, int] | None:
        if number in self._spans:
            return self._spans[number]
        if number < 1:
            return None
        beside = self._span(number - 1 if number > self._line else number + 1)
        if beside is None:
            return None
        if number > self._line:
            first = beside[1] + 1
            if first >= len(self._data):
                return None
            last = self._data.find(b"\n", first)
            span = (first, len(self._data) if last < 0 else last)
        else:
            last = beside[0] - 1
            span = (self._data.rfind(b"\n", 0, max(last, 0)) + 1, last)
        self._spans[number] = span
        return span
