"""A text as it reads without whitespace and with its escapes undone, and the way back to where that stood.

All of it is linear: each pattern below matches a bounded number of characters and starts at one of three.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple

BLANK = b" \t\r\n\x0b\x0c\0"
"""Left out when comparing. NUL too, so that UTF-16 reads like ASCII."""
ROUNDS = 3
"""How often escapes are undone: JSON in JSON in a URL."""
_INK = late_pattern(rb"[^ \t\r\n\x0b\x0c\0]+")
_SIGNS = (b"%", b"\\", b"&")
_ESCAPE = late_pattern(
    rb"%([0-9A-Fa-f]{2})"
    rb"|\\u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|u\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|([0-3][0-7]{2})|(.))"
    rb"|&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));?",
    re.DOTALL,
)
_BYTE = (1, 7)
_HEX = (4, 5, 6, 11)
_CONTROL = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
    b"a": b"\a",
    b"0": b"\0",
}
_ENTITY = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_WIDEST = 12
"""Of one escape."""
_LINES = (b"\\n", b"\\r", b"\\t")
_LINE = late_pattern(rb"\\[nrt]")
_CHUNK = 4096
_BETWEEN = b"\x1f"
_KNOWN: dict[bytes, bytes] = {}
_MOST_KNOWN = 4096
_SIDE = late_pattern(rb"^[ +-]", re.MULTILINE)


def squeeze(text: bytes) -> bytes:
    return text.translate(None, BLANK)


def _plain(match: re.Match[bytes]) -> bytes:
    """What an escape stands for. Most texts have the same few again and again."""
    text = match.group()
    found = _KNOWN.get(text)
    if found is None:
        found = _worked_out(match)
        if len(_KNOWN) < _MOST_KNOWN:
            _KNOWN[text] = found
    return found


def _worked_out(match: re.Match[bytes]) -> bytes:
    """Itself where it stands for nothing."""
    which = match.lastindex or 0
    part = match.group(which)
    if which in _BYTE:
        return bytes.fromhex(part.decode())
    if which in _HEX:
        return _character(int(part, 16), match)
    if which == 3:
        high, low = int(match.group(2), 16), int(part, 16)
        return _character(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), match)
    if which == 8:
        return bytes((int(part, 8),))
    if which == 9:
        return _CONTROL.get(part, part)
    return _character(int(part), match) if which == 10 else _ENTITY[part]


def _character(code: int, match: re.Match[bytes]) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass") if code <= 0x10FFFF else match.group()


def readings(text: bytes) -> set[bytes]:
    """What may become of a squeezed text when escapes are undone: those it has itself are undone with the others, all
    of them or those of one kind, as often as escapes are undone at all."""
    known, newest = {text}, {text}
    for _ in range(ROUNDS):
        made = {squeeze(_undone(each, signs)) for each in newest for signs in (*_SIGNS, b"".join(_SIGNS))}
        newest = made - known
        known |= newest
    return known


def _undone(text: bytes, signs: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: _plain(match) if match.group()[0] in signs else match.group(), text)


def is_plain(text: bytes) -> bool:
    """Whether squeezing it is all there is to do."""
    return b"%" not in text and b"\\" not in text and b"&" not in text and b"@@ " not in text


class TextView(Protocol):
    """A text made from another one."""

    text: bytes

    @abstractmethod
    def back(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that this one came from. Worked out only where something was found."""


class Squeezed:
    """Without whitespace. Where things stood is worked out piece by piece, where it is asked for."""

    def __init__(self, text: bytes, below: TextView | None = None) -> None:
        self.text = squeeze(text)
        self._whole, self._below = text, below
        self._runs: dict[int, tuple[list[int], list[int]]] = {}

    def back(self, start: int, end: int) -> tuple[int, int]:
        start, end = self._at(start), self._at(end - 1) + 1
        return (start, end) if self._below is None else self._below.back(start, end)

    def _at(self, index: int) -> int:
        chunk = bisect_right(self._sums, index) - 1
        index -= self._sums[chunk]
        starts, places = self._runs.get(chunk) or self._look(chunk)
        run = bisect_right(starts, index) - 1
        return places[run] + index - starts[run]

    def _look(self, chunk: int) -> tuple[list[int], list[int]]:
        spans = [match.span() for match in _INK.finditer(self._whole, chunk * _CHUNK, (chunk + 1) * _CHUNK)]
        starts = [0, *accumulate(end - start for start, end in spans)]
        found = self._runs[chunk] = starts[:-1], [start for start, _ in spans]
        return found

    @cached_property
    def _sums(self) -> list[int]:
        """How much is left of what stands before each chunk."""
        sizes = (len(squeeze(self._whole[at : at + _CHUNK])) for at in range(0, len(self._whole), _CHUNK))
        return [0, *accumulate(sizes)]


class ViewPiece(NamedTuple):
    """From where to where in the text before, and what became of it."""

    start: int
    end: int
    size: int


class Pieced:
    """Put together from pieces, each as it was or as something else. Which is worked out where it is asked for."""

    def __init__(self, text: bytes, below: TextView | None, make: Callable[[], Iterator[ViewPiece]]) -> None:
        self.text = text
        self._below, self._make = below, make

    def back(self, start: int, end: int) -> tuple[int, int]:
        start, end = self._at(start)[0], self._at(end - 1)[1]
        return (start, end) if self._below is None else self._below.back(start, end)

    def _at(self, index: int) -> tuple[int, int]:
        which = bisect_right(self._starts, index) - 1
        piece = self._pieces[which]
        if piece.size != piece.end - piece.start:
            return piece.start, piece.end
        place = piece.start + index - self._starts[which]
        return place, place + 1

    @cached_property
    def _pieces(self) -> list[ViewPiece]:
        return [piece for piece in self._make() if piece.size]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(piece.size for piece in self._pieces)][:-1]


def views(text: bytes, reach: int) -> Iterator[TextView]:
    """The text squeezed; a diff also without its margin; a text with line breaks as JSON writes them without those; then
    what is around its other escapes with all of them undone, as long as there are any. `reach` is how far from an escape
    something can stand that it is part of."""
    view: TextView = Squeezed(text)
    yield view
    if text.startswith(b"@@ ") or b"\n@@ " in text:
        margin = _replaced(_SIDE, lambda match: b"", text, None)
        yield Squeezed(margin.text, margin)
    yield from _unbroken(view)
    for _ in range(ROUNDS):
        near = _near_escapes(view.text, reach)
        if not near:
            return
        part = _cut(view, near)
        plain = _replaced(_ESCAPE, _plain, part.text, part)
        view = Squeezed(plain.text, plain)
        yield view
        yield from _unbroken(view)


def _near_escapes(text: bytes, reach: int) -> list[tuple[int, int]]:
    """The stretches around escapes, those that touch as one."""
    found = sorted(at for sign in _SIGNS for at in _escapes(text, sign))
    near: list[tuple[int, int]] = []
    for at in found:
        start, end = max(0, at - reach), min(len(text), at + reach + _WIDEST)
        if near and start <= near[-1][1]:
            near[-1] = near[-1][0], end
        else:
            near.append((start, end))
    return near


def _escapes(text: bytes, sign: bytes) -> Iterator[int]:
    at = text.find(sign)
    while at >= 0:
        match = _ESCAPE.match(text, at)
        if match and match.group() not in _LINES:
            yield at
        at = text.find(sign, at + (2 if sign == b"\\" else 1))


def _unbroken(view: TextView) -> Iterator[Pieced]:
    """Texts have so many of these that they are worth a quick look of their own."""
    text = view.text
    for line in _LINES:
        text = text.replace(line, b"")
    if len(text) < len(view.text):
        yield Pieced(text, view, lambda: _pieces(_LINE, lambda match: b"", view.text))


def _cut(view: TextView, near: list[tuple[int, int]]) -> Pieced:
    def pieces() -> Iterator[ViewPiece]:
        for start, end in near:
            yield ViewPiece(start, end, end - start)
            yield ViewPiece(end, end, len(_BETWEEN))

    text = view.text
    return Pieced(b"".join(text[start:end] + _BETWEEN for start, end in near), view, pieces)


def _replaced(
    pattern: re.Pattern[bytes], made: Callable[[re.Match[bytes]], bytes], text: bytes, below: TextView | None
) -> Pieced:
    return Pieced(pattern.sub(made, text), below, lambda: _pieces(pattern, made, text))


def _pieces(
    pattern: re.Pattern[bytes], made: Callable[[re.Match[bytes]], bytes], text: bytes
) -> Iterator[ViewPiece]:
    at = 0
    for match in pattern.finditer(text):
        yield ViewPiece(at, match.start(), match.start() - at)
        yield ViewPiece(match.start(), match.end(), len(made(match)))
        at = match.end()
    yield ViewPiece(at, len(text), len(text) - at)
