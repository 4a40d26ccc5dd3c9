"""Characters that make a text read otherwise than it is: reordering (Trojan Source), tags, nothing where something is.

Joiners and marks that languages and emoji need are left alone: only what stands where no writing system puts it counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

from toolgate.secrets.scan.rules import MANY, SecretHit, Source, shown


def _run(pattern: str) -> re.Pattern[bytes]:
    """One or more of a set of characters, as byte sequences. Written so that `re` knows what a match begins with."""
    one = _utf8(pattern)
    return re.compile(one + one + b"*")


def _utf8(pattern: str) -> bytes:
    found: dict[bytes, list[int]] = {}
    for char in _members(pattern):
        raw = char.encode()
        found.setdefault(raw[:-1], []).append(raw[-1])
    sides = (re.escape(head) + b"[" + _ranges(tails) + b"]" for head, tails in found.items())
    return b"(?:" + b"|".join(sides) + b")"


def _members(pattern: str) -> Iterator[str]:
    for low, high in re.findall(r"(.)(?:-(.))?", pattern.strip("[]")):
        yield from map(chr, range(ord(low), ord(high or low) + 1))


def _ranges(tails: list[int]) -> bytes:
    return re.escape(bytes(sorted(tails)))


_FLAGS = re.compile(
    b"|".join(
        "".join(("\U0001f3f4", *(chr(0xE0000 + ord(letter)) for letter in place), "\U000e007f")).encode()
        for place in ("gbeng", "gbsct", "gbwls")
    )
)
"""The three flags that are written with tags."""
_BIDI = _run("[\u202a-\u202e\u2066-\u2069]")
_TAGS = _run("[\U000e0000-\U000e007f]")
_ZERO = _run("[\u200b-\u200d\u2060-\u2064\ufeff\u180e]")
_SELECTORS = _run("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_LONG = 4
_PIECE = 1 << 16
_REACH = 64
"""A run that is longer than a piece is found in each of them."""


def hidden(source: Source) -> Iterator[SecretHit]:
    content = source.content
    if content.isascii():
        return
    flags = (
        {match.start() + 4 for match in _FLAGS.finditer(content)} if b"\xf0\x9f\x8f\xb4" in content else ()
    )
    for pattern in (_BIDI, _TAGS, _ZERO, _SELECTORS):
        yield from islice(_hits(pattern, content, flags), MANY)


def _hits(pattern: re.Pattern[bytes], content: bytes, flags: Collection[int]) -> Iterator[SecretHit]:
    for match in _pieces(pattern, content):
        rule = _rule(pattern, match)
        if rule and not (pattern is _TAGS and match.start() in flags):
            start, end = match.span()
            yield SecretHit("hidden", rule, start, end, shown(content[start : min(end, start + 24)]))


def _rule(pattern: re.Pattern[bytes], match: re.Match[bytes]) -> str:
    """Joiners count inside a word of plain letters, or where several stand in a row; selectors in a row only."""
    if pattern is _BIDI:
        return "bidi-control"
    if pattern is _TAGS:
        return "tag-characters"
    count = len(match[0].decode("utf-8", "replace"))
    if pattern is _SELECTORS:
        return "variation-selector-run" if count > 1 else ""
    content, start, end = match.string, match.start(), match.end()
    if start > 0 and end < len(content) and content[start - 1] in _LETTERS and content[end] in _LETTERS:
        return "zero-width-in-word"
    return "zero-width-run" if count >= _LONG else ""


def _pieces(pattern: re.Pattern[bytes], content: bytes) -> Iterator[re.Match[bytes]]:
    """Piece by piece, so that one search does not keep every other thread waiting."""
    done = 0
    for begin in range(0, len(content), _PIECE):
        for match in pattern.finditer(content, max(done, begin - _REACH), begin + _PIECE):
            done = match.end()
            yield match
