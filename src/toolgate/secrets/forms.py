"""Every form of a value that redaction knows.

A form is found in one of two ways. What an encoding makes of the whole value (base64, hex, the value backwards) is a
needle of its own. What escapes single characters (URL, JSON, HTML, Python) is undone in the text instead, by `views`,
because one value has countless partly escaped spellings. Whitespace counts for nothing on either side, so a value
that is broken into lines is found like any other.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from toolgate.secrets.views import readings, squeeze

SHORTEST = 8
"""Characters, whitespace apart. A shorter value would mangle ordinary text."""
_LONG_LINE = re.compile(rb"[A-Za-z0-9+/=_-]{20,}")
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
