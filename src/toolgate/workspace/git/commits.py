"""Commit objects and diffs as they may be shown.

Commits are read by us: no format string, no signature program, and any encoding the author chose.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone

from toolgate.core.conceal import Secrets, blank, conceal
from toolgate.workspace.git.patch import Changed, GitFileDiff, GitHunk, GitLine
from toolgate.workspace.git.view import GitView

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


# Diffs and commits as they may be known. A hunk may show half of a secret that goes over several lines, so
# its lines are taken from the whole files, in which it can be found. Where the vault is empty, git is asked
# for nothing more.

BLOBS_CAP = 64 << 20
BLOBS_SECONDS = 5.0


def known_commit(oid: str, content: bytes, secrets: Secrets | None) -> Commit:
    """Before its message is cut."""
    return read_commit(oid, conceal(content, secrets).text)


def said_by(commit: bytes, oid: str, author: str, words: str, secrets: Secrets) -> bool:
    """Whether a commit that git found says so beside its secrets, too. Git takes each line for a text to find."""
    if not conceal(commit, secrets).marks:
        return True
    found = read_commit(oid, commit)
    person = f"{found.author.name} <{found.author.email}>"
    return _has(person, author, secrets) and _has(found.message, words, secrets)


def _has(text: str, wanted: str, secrets: Secrets) -> bool:
    known = blank(text, secrets).casefold()
    return not wanted or any(line.casefold() in known for line in wanted.split("\n"))


async def conceal_hunks(
    view: GitView, comparisons: Iterable[Changed], env: Mapping[str, str] | None = None
) -> None:
    secrets = view.secrets()
    files = [file for changed in comparisons for file in changed.files if file.hunks and not file.submodule]
    if secrets is None or not files:
        return
    wanted = dict.fromkeys(oid for file in files for oid in file.ids if oid.strip("0"))
    output = await view.git(
        "cat-file", "--batch", seconds=BLOBS_SECONDS, cap=BLOBS_CAP, env=env,
        stdin="".join(f"{oid}\n" for oid in wanted).encode(),
    )  # fmt: skip
    await asyncio.to_thread(_conceal, files, _blobs(output.data), secrets)


def _blobs(data: bytes) -> dict[str, bytes]:
    """What `cat-file` printed; of one that was cut, nothing."""
    found: dict[str, bytes] = {}
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        words = data[at:end].decode("ascii", "replace").split(" ")
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            if at + size < len(data):
                found[words[0]] = data[at : at + size]
            at += size + 1
    return found


def _conceal(files: list[GitFileDiff], blobs: Mapping[str, bytes], secrets: Secrets) -> None:
    for file in files:
        if not all(oid in blobs or not oid.strip("0") for oid in file.ids):
            file.unread += len(file.hunks)  # too large to be looked at, so not shown
            file.hunks = []
            continue
        old, new = (_marked_lines(blobs.get(oid, b""), file.encoding, secrets) for oid in file.ids)
        if old is not None or new is not None:
            file.hunks = [_known(hunk, old, new) for hunk in file.hunks]


def _marked_lines(blob: bytes, encoding: str, secrets: Secrets) -> list[str] | None:
    known = conceal(blob, secrets)
    return known.text.decode(encoding, "replace").split("\n") if known.marks else None


def _known(hunk: GitHunk, old: list[str] | None, new: list[str] | None) -> GitHunk:
    """Git cuts what it says of the section, so that half a secret may be left there."""

    def known(line: GitLine) -> GitLine:
        lines = old if line.type == "deletion" else new
        there = lines is not None and line.line_number <= len(lines)
        return replace(line, content=lines[line.line_number - 1]) if lines is not None and there else line

    return replace(hunk, section="", lines=[known(line) for line in hunk.lines])
