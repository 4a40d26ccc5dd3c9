"""A text as whoever asks about it may know it: a marker stands where a secret stood.

Redaction at the door takes whole values out of an answer. An answer *about* a text (a match, a count, a range of lines,
a cut) would still tell what a value is made of, bit by bit, so such questions are put to the concealed text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Protocol

from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import dataclass

_LINE_ENDS = late_pattern(rb"\r\n|\r|\n")
_NOTHING = "\udfff"
"""Half a character, which no text to find can hold."""


class Span(NamedTuple):
    start: int
    end: int
    name: str


class Secrets(Protocol):
    """Knows where secrets stand in a text."""

    @property
    def longest(self) -> int:
        """Characters of the longest value."""
        ...

    def spans(self, text: bytes) -> Sequence[Span]:
        """In order and apart from one another."""
        ...


def marker(name: str) -> str:
    return f"[secret:{name}]"


def reach(secrets: Secrets) -> int:
    """Bytes that the longest value can take in its longest form, and some."""
    return secrets.longest * 12 + 4096


@dataclass(frozen=True, slots=True)
class Concealed:
    text: bytes
    marks: tuple[tuple[int, int], ...] = ()
    """Where markers stand in it; those of one value with the line ends between them."""

    def hides(self, start: int, end: int) -> bool:
        """Whether what stands there overlaps a marker; nothing at all does so at its edges, too."""
        at = bisect_left(self.marks, start, key=itemgetter(1))
        while at < len(self.marks) and self.marks[at][0] <= end:
            first, last = self.marks[at]
            if (first < end and start < last) or start == end:
                return True
            at += 1
        return False


def conceal(data: bytes, secrets: Secrets | None) -> Concealed:
    """Each line of a value becomes a marker, so that the numbers of lines stay true."""
    spans = _found(data, secrets) if secrets is not None else ()
    if not spans:
        return Concealed(data)
    made: list[bytes] = []
    marks: list[tuple[int, int]] = []
    at = size = 0
    for span in spans:
        sign = marker(span.name).encode()
        put = sign + b"".join(end + sign for end in _LINE_ENDS.findall(data, span.start, span.end))
        size += span.start - at
        made += (data[at : span.start], put)
        marks.append((size, size + len(put)))
        size += len(put)
        at = span.end
    made.append(data[at:])
    return Concealed(b"".join(made), tuple(marks))


def _found(data: bytes, secrets: Secrets) -> list[Span]:
    """Where secrets stand, with whole characters: a form in bytes may begin within one."""
    found: list[Span] = []
    for start, end, name in secrets.spans(data):
        start = max(start, found[-1].end if found else 0)
        while start and data[start] & 0xC0 == 0x80 and (not found or start > found[-1].end):
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        if start < end:
            found.append(Span(start, end, name))
    return found


def conceal_text(text: str, secrets: Secrets | None) -> str:
    if secrets is None:
        return text
    data = text.encode("utf-8", "surrogatepass")
    made = conceal(data, secrets)
    return made.text.decode("utf-8", "surrogatepass") if made.marks else text


def blank(text: str, secrets: Secrets | None) -> str:
    """The same length, with nothing that anybody could look for where secrets stand: places in it are places in the
    text."""
    if secrets is None:
        return text
    data = text.encode("utf-8", "surrogatepass")
    spans = _found(data, secrets)
    return "".join(_blanked(data, spans)) if spans else text


def encodes(text: str) -> bool:
    """Whether it is made of whole characters, so that it is nowhere in what was blanked."""
    return _NOTHING not in text


def _blanked(data: bytes, spans: Sequence[Span]) -> Iterator[str]:
    at = 0
    for span in spans:
        yield data[at : span.start].decode("utf-8", "surrogatepass")
        yield _NOTHING * len(data[span.start : span.end].decode("utf-8", "surrogatepass"))
        at = span.end
    yield data[at:].decode("utf-8", "surrogatepass")
