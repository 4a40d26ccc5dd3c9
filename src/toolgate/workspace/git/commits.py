"""Commit objects, read by us: no format string, no signature program, and any encoding the author chose."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

_PERSON = re.compile(rb"(.*?) ?<([^>]*)> ?(-?\d+)? ?([+-]\d{4})?.*", re.S)


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
    head, _, body = content.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name:  # a line that begins with a space goes on with a signature
            fields.setdefault(name, []).append(value)
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
    found = _PERSON.fullmatch(line)
    if found is None:
        return Person(_text(line, codec), "", "")
    date = moment(int(found[3]), (found[4] or b"+0000").decode()) if found[3] else ""
    return Person(_text(found[1], codec), _text(found[2], codec), date)


def _codec(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode("ascii")).name if len(name) < 40 else "utf-8"
    except (LookupError, UnicodeDecodeError):
        return "utf-8"


def _text(raw: bytes, codec: str) -> str:
    """As the author's encoding says, else UTF-8, else one byte per character."""
    for attempt in (codec, "utf-8"):
        try:
            return raw.decode(attempt)
        except (UnicodeDecodeError, LookupError, ValueError):
            continue
    return raw.decode("latin-1")
