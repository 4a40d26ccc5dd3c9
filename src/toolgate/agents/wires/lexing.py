"""Extent of a JSON text inside a message: where it ends, whether or not it is right.

For strict JSON the answer is exact. For broken JSON it is careful: a mark within any kind of quotes, also those that JSON
does not know, does not end it, so that what a string says cannot pose as the next call.
"""

from __future__ import annotations

import re
from typing import NamedTuple

STRING = r'"(?:[^"\\\n]++|\\[^\n])*+"'
_LONG = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SKIP = re.compile(rf"""(?:[^"'“‘<]++|<(?!/?tool_call>)|(?<![{{\[,:(=\s])'|{STRING})*+""")
_SINGLE = re.compile(r"'(?:[^'\\\n]++|\\[^\n])*+'")
_CURLY = {"“": "”", "‘": "’"}
_BRACKETS = re.compile(rf"""{STRING}|"|(?<=[{{\[,:(=\s])'|[“‘]|[{{\[]+|[}}\]]+""")
_OPENS = frozenset("{[,:(=")
NEAR = 40
"""Characters before a single quote that are looked at, to tell one that opens a string from an apostrophe."""


class JsonExtent(NamedTuple):
    end: int
    """Where the inner text ends."""
    stop: int
    """Where the element ends."""
    flaw: str = ""


def until_tag(text: str, start: int, final: bool, opening: str, closing: str) -> JsonExtent | None:
    """Up to the closing tag outside of strings. None: not known yet."""
    at, inside, nested, end, odd = start, 1, False, len(text), OddStrings(text)
    while True:
        found = _SKIP.match(text, at)
        at = found.end() if found else at
        if at >= end:
            return JsonExtent(end, end, f"there is no {closing}") if final else None
        if text[at] != "<":
            past = odd.past(at, final, closing)
            if past is None:
                return None
            at = past
        elif text.startswith(closing, at):
            inside -= 1
            if inside == 0:
                return JsonExtent(at, at + len(closing))
            at += len(closing)
        else:
            nested = nested or depth(text, start, at) > 0
            if not nested:
                return JsonExtent(at, at, f"there is no {closing} before the next {opening}")
            inside += 1
            at += len(opening)


def until_bracket(text: str, start: int, final: bool) -> JsonExtent | None:
    """Up to the bracket that closes the one at `start`."""
    at, level, end, odd = start, 0, len(text), OddStrings(text)
    while True:
        found = _BRACKETS.search(text, at)
        if found is None:
            return JsonExtent(end, end, "the JSON ends too early") if final else None
        first, at = found[0][0], found.end()
        if first in "{[":
            level += len(found[0])
        elif first in "}]":
            if level <= len(found[0]):
                stop = found.start() + level
                return JsonExtent(stop, stop)
            level -= len(found[0])
        elif len(found[0]) == 1:
            past = odd.past(found.start(), final, "")
            if past is None:
                return None
            at = past


def depth(text: str, start: int, end: int) -> int:
    """How many brackets are open, those in strings not counted."""
    level = 0
    for found in _BRACKETS.finditer(text, start, end):
        first = found[0][0]
        level += len(found[0]) if first in "{[" else -len(found[0]) if first in "}]" else 0
    return level


class OddStrings:
    """Strings that JSON does not know: of single or curly quotes, or with line breaks in them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed = {"“": -1, "‘": -1}
        """Up to where no curly quote closes what one opens, so that nobody looks twice."""

    def past(self, at: int, final: bool, closing: str) -> int | None:
        """Where the string ends, or past the quote if it opens none. None: not known yet."""
        text, quote = self._text, self._text[at]
        if quote == '"':
            line = self._line_end(at)
            if closing and text[at:line].rstrip().endswith(closing):
                return text.rfind(closing, at, line)  # not closed, and the call ends with its line
            found = _LONG.match(text, at)
            if found is None:
                return len(text) if final else None
            return found.end()
        if quote == "'":
            opens = text[max(at - NEAR, 0) : at].rstrip()[-1:] in _OPENS
            found = _SINGLE.match(text, at) if opens else None
            return found.end() if found else at + 1
        if at < self._unclosed[quote]:
            return at + 1
        line = self._line_end(at)
        stop = text.find(_CURLY[quote], at, line)
        if stop < 0:
            self._unclosed[quote] = line
            return at + 1
        return stop + 1

    def _line_end(self, at: int) -> int:
        found = self._text.find("\n", at)
        return len(self._text) if found < 0 else found
