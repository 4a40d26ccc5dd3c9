"""Commit objects, read by us: no format string, no signature program, and any encoding the author chose."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

COMMIT_KEPT = 256 << 10
"""What of a commit is read. A message is shown up to a small part of this."""
LONGEST_LINE = 4096
"""What of a line before the message is read; signatures have many lines."""
_NAMED = """
utf-8 ascii koi8-r koi8-u euc-jp euc-kr shift_jis iso-2022-jp gb2312 gbk gb18030 big5 mac-roman cp437 cp850 cp866 cp932 cp949
cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-9
iso-8859-10 iso-8859-11 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16
"""
_CODECS = frozenset(codecs.lookup(name).name for name in _NAMED.split())
"""Encodings that people wrote messages in. Python knows others that take a quadratic time, or are none."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    email: str
    date: str
    """ISO 8601, in the person's own time zone; empty where the commit says none that exists."""


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str

    @property
    def short(self) -> str:
        return self.hash[:10]


def read_commit(oid: str, content: bytes) -> Commit:
    head, _, body = content[:COMMIT_KEPT].partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name:  # a line that begins with a space goes on with a signature
            fields.setdefault(name, []).append(value[:LONGEST_LINE])
    codec = _codec(fields.get(b"encoding", [b"utf-8"])[0])
    return Commit(
        oid,
        tuple(parent.decode("ascii", "replace") for parent in fields.get(b"parent", ())),
        _person(fields.get(b"author", [b""])[0], codec),
        _person(fields.get(b"committer", [b""])[0], codec),
        _text(body, codec).rstrip("\n"),
    )


def moment(seconds: int, zone: str) -> str:
    minutes = int(zone[1:3]) * 60 + int(zone[3:5]) if len(zone) == 5 else 0
    try:
        there = timezone(timedelta(minutes=-minutes if zone.startswith("-") else minutes))
        return datetime.fromtimestamp(seconds, UTC).astimezone(there).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _person(line: bytes, codec: str) -> Person:
    """`Name <address> seconds zone`; a name may have anything in it but a `<`."""
    name, found, rest = line.partition(b"<")
    email, closed, when = rest.partition(b">")
    if not found or not closed:
        return Person(_text(line, codec), "", "")
    seconds, zone = [*when.split()[:2], b"", b""][:2]
    date = ""
    if seconds.removeprefix(b"-").isdigit() and len(seconds) < 20:
        date = moment(int(seconds), zone.decode() if _is_zone(zone) else "+0000")
    return Person(_text(name.removesuffix(b" "), codec), _text(email, codec), date)


def _is_zone(word: bytes) -> bool:
    return len(word) == 5 and word[:1] in (b"+", b"-") and word[1:].isdigit()


def _codec(name: bytes) -> str:
    try:
        known = codecs.lookup(name.decode("ascii")).name if len(name) < 40 else ""
    except (LookupError, UnicodeDecodeError, ValueError):
        return "utf-8"
    return known if known in _CODECS else "utf-8"


def _text(raw: bytes, codec: str) -> str:
    """As the author's encoding says, else UTF-8, else one byte per character."""
    for attempt in (codec, "utf-8"):
        try:
            return raw.decode(attempt)
        except (UnicodeDecodeError, LookupError, ValueError):
            continue
    return raw.decode("latin-1")
