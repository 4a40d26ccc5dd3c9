"""Bytes as text: which encoding they are in, whether they are text at all, and lines out of a file of any size. And texts as
tools handle them: the canonical form that hashes compare, and the ends of lines.

UTF-8 first, then what a byte order mark says, then a well-founded guess. A guess counts only where encoding the
text again gives the same bytes, so that an edit changes nothing but what it was about. A detector tells languages apart by
their sentences, and source files have few of them: where it is not sure, the bytes themselves decide. Letters of Western
Europe stand alone, or by twos within a word of ASCII letters; characters of two bytes do not.
"""

from __future__ import annotations

import codecs
import os
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

from toolgate.core.conceal import Secrets, conceal, reach
from toolgate.core.errors import InvalidArgs, NotText, TooLarge
from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass

_WESTERN = "cp1252"
_WIDE = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_HIGH = late_pattern(rb"[\x80-\xff]")
_LETTER = late_pattern(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\x80-\xff]{2}(?=[A-Za-z])")
_KANA = late_pattern(rb"[\x82\x83][\x40-\xfc]")
"""In cp932, whose second bytes may be ASCII letters."""
_BEYOND = late_pattern(rb"[\x80-\x9f]")
"""Letters and signs in cp1252, and in ISO 8859-1 nothing that is ever written."""
_SURE = 0.1
"""Below this the detector's word is worth less than how the bytes stand."""


def guess_encoding(sample: bytes) -> str | None:
    """None where nothing fits."""
    import chardet  # most files are UTF-8 and need no guess

    told = chardet.detect(sample, encoding_era=chardet.EncodingEra.MODERN_WEB)
    found = told["encoding"]
    if found is None or told["confidence"] < _SURE:
        found = _by_bytes(sample) or found
    if found is None or not _fits(sample, found):
        return None
    if _fits(sample, _WESTERN) and sample.decode(found) == sample.decode(_WESTERN):
        # the narrower of the two: what is written into the file later may not need the wider one
        found = _WESTERN if _BEYOND.search(sample) else "iso8859_1"
    return codecs.lookup(found).name


def _by_bytes(sample: bytes) -> str | None:
    high = len(_HIGH.findall(sample))
    kana = len(_KANA.findall(sample)) >= high / 4
    if not kana and sum(map(len, _LETTER.findall(sample))) >= high / 2:
        return _WESTERN if _fits(sample, _WESTERN) else None
    return next((name for name in _WIDE if _fits(sample, name) and _is_wide(sample.decode(name))), None)


def _fits(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _is_wide(text: str) -> bool:
    """Whether all that is not ASCII is of the width that the scripts of East Asia have."""
    return all(unicodedata.east_asian_width(char) in "WF" for char in text if not char.isascii())


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
    encoding = guess_encoding(sample)
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


Range = tuple[int, int]
"""First and last line, counted from 1, both included."""
_CHUNK_BYTES = 1 << 20


def lines_of(
    handle: int,
    ranges: Sequence[Range],
    shown: str,
    *,
    keep: int,
    scan: int,
    secrets: Secrets | None = None,
) -> list[bytes]:
    """The bytes of each range. At most `keep` bytes are held and `scan` bytes looked at."""
    first, last = min(start for start, _ in ranges), max(end for _, end in ranges)
    kept: dict[int, bytearray] = {}
    at, held, seen = 1, 0, 0
    for chunk in _chunks(handle) if secrets is None else _concealed(handle, first, secrets):
        if at > last:
            break
        seen += len(chunk)
        if seen > scan:
            raise TooLarge(
                f"line {first:,} of {shown!r} is beyond the first {scan:,} bytes", "ask for earlier lines"
            )
        breaks = chunk.count(b"\n")
        if at + breaks >= first:
            held += _collect(chunk, at, ranges, kept)
            if held > keep:
                raise TooLarge(
                    f"these lines of {shown!r} have more than {keep:,} bytes", "ask for fewer lines"
                )
        at += breaks
    numbers = sorted(kept)
    return [b"".join(kept[number] for number in numbers if first <= number <= last) for first, last in ranges]


def _chunks(handle: int) -> Iterator[bytes]:
    while chunk := os.read(handle, _CHUNK_BYTES):
        yield chunk


def _concealed(handle: int, first: int, secrets: Secrets) -> Iterator[bytes]:
    """The same without secrets, from a little before the first line that is wanted: what is far above it is only
    counted. As much is held back as a secret may take, in case it goes on in the next chunk."""
    margin = reach(secrets)
    kept, at = b"", 1
    for chunk in _chunks(handle):
        kept += chunk
        if len(kept) <= 2 * margin:
            continue
        breaks = kept.count(b"\n")
        if at + breaks < first:
            cut, given = len(kept) - margin, kept[: len(kept) - margin]
        else:
            cut = _outside(kept, len(kept) - margin, secrets)
            given = conceal(kept[:cut], secrets).text
        at += given.count(b"\n")
        yield given
        kept = kept[cut:]
    yield conceal(kept, secrets).text


def _outside(data: bytes, cut: int, secrets: Secrets) -> int:
    """The place, or if a secret stands there its end."""
    return next((span.end for span in secrets.spans(data) if span.start < cut < span.end), cut)


def _collect(chunk: bytes, at: int, ranges: Sequence[Range], kept: dict[int, bytearray]) -> int:
    """Keep what belongs to a range; a line that goes on in the next chunk is continued there."""
    held = 0
    for number, part in enumerate(_split(chunk), start=at):
        if part and any(start <= number <= end for start, end in ranges):
            kept.setdefault(number, bytearray()).extend(part)
            held += len(part)
    return held


def _split(chunk: bytes) -> list[bytes]:
    """At `\\n` only, which stays with its line."""
    parts = chunk.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + parts[-1:]


LineEnd = Literal["lf", "crlf"]
_LONE_LF = late_pattern(r"(?<!\r)\n")


def canonical_text(text: str) -> str:
    """LF only, no white space at the ends of lines, a newline at the end. An empty text stays empty."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = "\n".join(line.rstrip() for line in plain.split("\n"))
    return lines if not lines or lines.endswith("\n") else lines + "\n"


def line_end(text: str) -> LineEnd | None:
    """What every line ends with; None where there is only one line, or where they differ."""
    crlf = text.count("\r\n")
    lone = text.count("\n") - crlf
    if crlf and not lone:
        return "crlf"
    return "lf" if lone and not crlf else None


def with_line_end(text: str, wanted: LineEnd | None) -> str:
    """A text that fits into one whose lines end so. One that mixes them, or has CRLF itself, is left alone."""
    if wanted != "crlf" or "\r" in text:
        return text
    return _LONE_LF.sub("\r\n", text)
