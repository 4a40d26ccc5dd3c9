"""Finding matching lines in one file's content, in process, with RE2: linear in time, whatever the pattern."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from toolgate.core.conceal import Concealed
from toolgate.workspace.search.query import LineHit, Match, SearchQuery, make_match
from toolgate.workspace.search.subset import Plan, plan

MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


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
        self.weight = made.weight

    def within(self, size: int, work: int) -> bool:
        """Whether so many bytes take no more than so much work: about 15 ns each, and nothing can end it."""
        return size * self.weight <= work

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

    def visible(self, known: Concealed) -> Iterator[tuple[LineHit | None, int, int]]:
        """Every matching line with its first match beside secrets; None where all of them touch one."""
        for hit, first, last in self.hits(known.text):
            found: LineHit | None = hit
            while found is not None and known.hides(first + found.start, first + found.end):
                found = self._next(known.text, found, first, last)
            yield found, first, last

    def _next(self, data: bytes, hit: LineHit, first: int, last: int) -> LineHit | None:
        at = first + hit.end + (hit.start == hit.end)
        found = self._regex.search(data, at, last) if at <= last else None
        return None if found is None else LineHit(hit.line, found.start() - first, found.end() - first)

    def hits(self, data: bytes) -> Iterator[tuple[LineHit, int, int]]:
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
            yield LineHit(line, start - first, end - first), first, last
            at = last + 1


@lru_cache(maxsize=64)
def matcher(pattern: str, case_sensitive: bool) -> Matcher | None:
    """None where only rg may answer."""
    made = plan(pattern, case_sensitive)
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
    query: SearchQuery,
    room: int,
    told: int = -1,
    most: int = sys.maxsize,
) -> tuple[list[Match], int]:
    """The first matches of one file, as many as there is room for, and how many lines match in all.

    `told` is how many rg has counted: what comes after so many, or has no room, is not looked at. More than `most` are
    too much.
    """
    if data.startswith(MARKS):
        raise Unequal  # before looking for NUL: UTF-16 is full of them, and rg reads it
    if b"\0" in data:
        return [], 0  # binary
    few = 0 <= told <= room  # then the plain lines are tried before asking whether all of it is UTF-8
    whole = data.isascii() or (not few and matched.agrees(data))
    if not whole and told < 0:
        raise Unequal
    found = _take(matched, data, file, query, room, told, most, whole=whole)
    if whole or found[1] == told:
        return found
    if few and matched.agrees(data):
        return _take(matched, data, file, query, room, told, most, whole=True)
    raise Unequal


def _take(
    matched: Matcher,
    data: bytes,
    file: str,
    query: SearchQuery,
    room: int,
    told: int,
    most: int,
    *,
    whole: bool,
) -> tuple[list[Match], int]:
    """Where the two do not agree on the whole, they do on the lines that are ASCII; and if those are as many as rg has
    found, there is no other."""
    found: list[Match] = []
    total = 0
    for hit, first, last in matched.hits(data):
        if not whole and not data[first:last].isascii():
            continue
        total += 1
        if total > most:
            raise TooMuch
        if len(found) < room:
            before, after = _before(data, first, query.context_lines), _after(data, last, query.context_lines)
            found.append(make_match(file, hit, data[first:last], before, after))
        if total == told or (whole and told >= 0 and len(found) == room):
            break
    return found, total


class SeenMatches(NamedTuple):
    matches: list[Match]
    total: int
    hidden: int
    """Lines that match only where a secret stands."""


def search_concealed(
    matched: Matcher, known: Concealed, file: str, query: SearchQuery, room: int, most: int = sys.maxsize
) -> SeenMatches:
    """The same for a file that holds a secret."""
    found: list[Match] = []
    total = hidden = 0
    for hit, first, last in matched.visible(known):
        if total + hidden >= most:
            raise TooMuch
        if hit is None:
            hidden += 1
            continue
        total += 1
        if len(found) < room:
            data, count = known.text, query.context_lines
            around = _before(data, first, count), _after(data, last, count)
            found.append(make_match(file, hit, data[first:last], *around))
    return SeenMatches(found, total, hidden)


def _before(data: bytes, first: int, count: int) -> list[bytes]:
    """The lines above the one that begins there, found from where it stands instead of splitting the file."""
    found: list[bytes] = []
    while first > 0 and len(found) < count:
        end = first - 1
        first = data.rfind(b"\n", 0, end) + 1
        found.append(data[first:end])
    found.reverse()
    return found


def _after(data: bytes, last: int, count: int) -> list[bytes]:
    """The lines below the one that ends there."""
    found: list[bytes] = []
    first = last + 1
    while first < len(data) and len(found) < count:
        end = data.find(b"\n", first)
        end = len(data) if end < 0 else end
        found.append(data[first:end])
        first = end + 1
    return found
