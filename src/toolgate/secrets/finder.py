"""Finder of values in any of their forms: one pass over a text says whether there can be any.

The pass compares every fourth (or eighth) group of four bytes with the groups that the needles must have at such a place,
all needles at once. Only a needle whose group was seen is then searched for. Ordinary text pays for the pass alone.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from toolgate.core.conceal import Span
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple
from toolgate.secrets.views import TextView, is_plain, readings, squeeze, views

# Every form of a value that redaction knows. A form is found in one of two ways. What an encoding makes of
# the whole value (base64, hex, the value backwards) is a needle of its own. What escapes single characters
# (URL, JSON, HTML, Python) is undone in the text instead, by `views`, because one value has countless
# partly escaped spellings. Whitespace counts for nothing on either side, so a value that is broken into
# lines is found like any other.

SHORTEST = 8
"""Characters, whitespace apart. A shorter value would mangle ordinary text."""
_LONG_LINE = late_pattern(rb"[A-Za-z0-9+/=_-]{20,}")
"""A line of a value with several that is telling by itself, as in a private key."""


class Needle(NamedTuple):
    """What is searched for, and how many characters beside it still tell something about the value."""

    text: bytes
    left: int = 0
    right: int = 0


def needles(value: str) -> set[Needle]:
    """What to look for in a text that has been squeezed."""
    found: set[Needle] = set()
    for raw in _spellings(value):
        found.update(Needle(text) for text in readings(squeeze(raw)) if len(text) >= SHORTEST)
        found.update(_base64(raw))
        found.update(_hex(raw))
    found.add(Needle(squeeze(value[::-1].encode())))
    found.add(Needle(squeeze("+".join(value.split(" ")).encode())))  # a form field has + for a space
    if "\n" in value:
        lines = (line.strip() for line in value.encode().split(b"\n"))
        found.update(Needle(line) for line in lines if _LONG_LINE.fullmatch(line))
    return found


def _spellings(value: str) -> Iterator[bytes]:
    yield value.encode()
    if not value.isascii():
        with suppress(UnicodeEncodeError):
            yield value.encode("latin-1")  # what `\xe9` stands for in a text


def _base64(raw: bytes) -> Iterator[Needle]:
    """The part that is the same whatever stands before and after the value, for each of the three alignments.

    The characters at its ends hold bits of the value and bits of what is beside it.
    """
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw)
        first = (before * 8 + 5) // 6
        last = (before + len(raw)) * 8 // 6
        whole = coded[first:last]
        right = 1 if (before + len(raw)) % 3 else 0
        for text in {whole, whole.translate(_URLSAFE)}:
            yield Needle(text, 1 if before else 0, right)


_URLSAFE = bytes.maketrans(b"+/", b"-_")


def _hex(raw: bytes) -> Iterator[Needle]:
    for separator in ("", ":", "-"):
        text = raw.hex(separator) if separator else raw.hex()
        yield Needle(text.encode())
        yield Needle(text.upper().encode())


_GROUP = 4
_FAR = 2 * _GROUP
_CODED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


class Finder:
    """Made anew whenever the values change; keeps nothing of what it searched. Implements `core.conceal.Secrets`."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._needles = [(needle, name) for name, value in values.items() for needle in needles(value)]
        shortest = min((len(needle.text) for needle, _ in self._needles), default=0)
        self._reach = max((len(needle.text) for needle, _ in self._needles), default=0) + 4
        self._stride = _FAR if shortest >= _FAR + _GROUP - 1 else _GROUP
        self._groups: dict[int, list[int]] = {}
        for index, (needle, _) in enumerate(self._needles):
            for group in _groups_of(needle.text, self._stride):
                self._groups.setdefault(group, []).append(index)
        self._wanted = frozenset(self._groups)
        self.longest = max((len(value) for value in values.values()), default=0)

    def spans(self, text: bytes) -> list[Span]:
        """Where values stand in it, in order and apart from one another."""
        if is_plain(text) and not self._seen(squeeze(text)):
            return []
        found: list[Span] = []
        for view in views(text, self._reach):
            seen = self._seen(view.text)
            if seen:
                found += self._in_view(view, seen)
        return _apart(found) if found else found

    def _seen(self, text: bytes) -> Iterable[int]:
        """The needles of which a group stands where it would."""
        if len(text) < _GROUP:
            return ()
        groups = memoryview(text)[: len(text) // _GROUP * _GROUP].cast("I")
        hits = self._wanted.intersection(groups if self._stride == _GROUP else groups[::2])
        return sorted({index for hit in hits for index in self._groups[hit]}) if hits else ()

    def _in_view(self, view: TextView, seen: Iterable[int]) -> Iterator[Span]:
        text = view.text
        for index in seen:
            needle, name = self._needles[index]
            at = text.find(needle.text)
            while at >= 0:
                end = at + len(needle.text)
                yield Span(*view.back(*_widened(text, at, end, needle)), name)
                at = text.find(needle.text, end)


def _groups_of(text: bytes, stride: int) -> Iterator[int]:
    """Those of its most unusual stretch: wherever that stands, one of them is at a multiple of the stride."""
    width = stride + _GROUP - 1
    starts = range(0, len(text) - width + 1, max(1, (len(text) - width) // 16))
    best = max(starts, key=lambda start: _unusual(text[start : start + width]))
    for offset in range(stride):
        (group,) = struct.unpack_from("=I", text, best + offset)
        yield group


def _unusual(stretch: bytes) -> int:
    return len(set(stretch)) + sum(not (97 <= byte <= 122 or byte in b"._/-") for byte in stretch)


def _widened(text: bytes, start: int, end: int, needle: Needle) -> tuple[int, int]:
    """With the characters beside it that hold some of its bits, and padding."""
    for _ in range(needle.left):
        if start and text[start - 1] in _CODED:
            start -= 1
    for _ in range(needle.right):
        if end < len(text) and text[end] in _CODED:
            end += 1
    while needle.right and text[end : end + 1] == b"=":
        end += 1
    return start, end


def _apart(found: list[Span]) -> list[Span]:
    """What overlaps is one: named after the one that begins first, the longest of those."""
    made: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if made and span.start < made[-1].end:
            made[-1] = made[-1]._replace(end=max(made[-1].end, span.end))
        else:
            made.append(span)
    return made
