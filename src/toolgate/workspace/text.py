"""Bytes as text: which encoding they are in, and whether they are text at all.

UTF-8 first, then what a byte order mark says, then a well-founded guess. A guess counts only where encoding the
text again gives the same bytes, so that an edit changes nothing but what it was about.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from toolgate.core.errors import InvalidArgs, NotText
from toolgate.workspace.encoding import guess

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADERS = (
    b"\x7fELF", b"MZ\x90", b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"BZh",
    b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"wOFF", b"OggS",
    b"ID3", b"RIFF", b"\x00asm", b"SQLite format 3\x00",
)  # fmt: skip
_CONTROLS = bytes({*range(9), 11, *range(14, 27), *range(28, 32), 127})
_SAMPLE = 64 << 10
_MANY = 0.02
"""A larger share of control characters is no text."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    encoding: str
    mark: bytes = b""

    def encode(self, text: str, shown: str) -> bytes:
        """Another text, in the encoding of this one."""
        return self._checked(self.mark + self._spelled(text, shown), text, shown)

    def extend(self, raw: bytes, added: str, shown: str) -> bytes:
        """This text and more. What is there stays as it is to the byte."""
        return self._checked(raw + self._spelled(added, shown), self.text + added, shown)

    def _spelled(self, text: str, shown: str) -> bytes:
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            bad = text[error.start : error.start + 1]
            raise InvalidArgs(
                f"{shown!r} is {self.encoding}, which cannot hold {bad!r}",
                "leave it out, or rewrite the file",
            ) from None

    def _checked(self, raw: bytes, text: str, shown: str) -> bytes:
        """An encoding that was guessed may be guessed otherwise once the bytes are others."""
        if not self.mark and self.encoding != "utf-8" and decode(raw, shown).text != text:
            raise InvalidArgs(
                f"{shown!r} was taken for {self.encoding}; with this change it would be read as something else",
                "rewrite the whole file with `fs.write`, which writes UTF-8",
            )
        return raw


def decode(raw: bytes, shown: str) -> Text:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return Text(_strict(raw[len(mark) :], encoding, shown), encoding, mark)
    if looks_binary(raw):
        raise _not_text(shown)
    try:
        return Text(raw.decode(), "utf-8")
    except UnicodeDecodeError:
        return _guess(raw, shown)


def looks_binary(raw: bytes) -> bool:
    """By its first bytes: a known header, a NUL, or more control characters than a text has."""
    head = raw[:_SAMPLE]
    if b"\0" in head or (head.startswith(_HEADERS) and not _plain(head[:512])):
        return True
    return len(head) - len(head.translate(None, _CONTROLS)) > max(_MANY * len(head), 1)


def _plain(head: bytes) -> bool:
    return (
        head.isascii() and len(head.translate(None, _CONTROLS)) == len(head) and not head.startswith(b"%PDF-")
    )


def _guess(raw: bytes, shown: str) -> Text:
    sample = raw[:_SAMPLE]
    if len(sample) < len(raw):  # not in the middle of a character
        sample = sample.rpartition(b"\n")[0] or sample
    encoding = guess(sample)
    if encoding is None:
        raise _not_text(shown)
    try:
        text = raw.decode(encoding)
        same = text.encode(encoding) == raw
    except UnicodeError:
        raise _not_text(shown) from None
    if not same:
        raise _not_text(shown)
    return Text(text, encoding)


def _strict(raw: bytes, encoding: str, shown: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise _not_text(shown) from None
    if "\0" in text[:_SAMPLE]:
        raise _not_text(shown)
    return text


def _not_text(shown: str) -> NotText:
    return NotText(
        f"{shown!r} is not text", "only text files can be read and edited; `fs.hash` works on any file"
    )
