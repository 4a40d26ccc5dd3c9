"""Hunk headers whose counts do not fit the lines after them, with counts that do: models count badly, and what they mean
is plain from the lines. As `git apply --recount` reads a diff, but for what may have been cut off.
"""

from __future__ import annotations

import io
import re

_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_LINE = (b" ", b"+", b"-", b"\\")


def recounted(diff: str) -> tuple[str, int]:
    """The diff with right counts, line by line where it was, and how many headers were wrong."""
    lines = io.BytesIO(diff.encode("utf-8", "surrogatepass")).readlines()
    wrong = at = 0
    while at < len(lines):
        found = _HEADER.match(lines[at])
        if found is None:
            at += 1
            continue
        end = _end_of(lines, at + 1, _count(found[2]), _count(found[4]))
        body = lines[at + 1 : end]
        if not (_cut_off(found, body) and end == len(lines)) and (header := _right(found, lines[at], body)):
            lines[at] = header
            wrong += 1
        at = end
    return b"".join(lines).decode("utf-8", "surrogatepass"), wrong


def _count(said: bytes | None) -> int:
    return 1 if said is None else int(said)


def _end_of(lines: list[bytes], start: int, old: int, new: int) -> int:
    """Where the hunk ends: before the next hunk, file or text. Empty lines at its end are empty context lines or what
    stands between two files: as many of them belong to it as its header counts, if that fits, and else none."""
    at = start
    while at < len(lines) and (lines[at] == b"\n" or lines[at].startswith(_LINE)) and not _next(lines, at):
        at += 1
    end = at
    while end > start and lines[end - 1] == b"\n":
        end -= 1
    for last in range(at, end, -1):
        if _sides(lines[start:last]) == (old, new):
            return last
    return end


def _next(lines: list[bytes], at: int) -> bool:
    """Whether another file begins here, or the signature of a mail, rather than a removed line that looks so."""
    header = lines[at].startswith(b"--- ") and at + 2 < len(lines)
    if header and lines[at + 1].startswith(b"+++ ") and lines[at + 2].startswith(b"@@"):
        return True
    return lines[at] == b"-- \n" and not (at + 1 < len(lines) and lines[at + 1].startswith(_LINE))


def _sides(body: list[bytes]) -> tuple[int, int]:
    old = sum(line[:1] in (b" ", b"-", b"\n") for line in body)
    new = sum(line[:1] in (b" ", b"+", b"\n") for line in body)
    return old, new


def _cut_off(found: re.Match[bytes], body: list[bytes]) -> bool:
    """Fewer lines than announced, and no context after the last change: the rest may have got lost."""
    old, new = _sides(body)
    short = old < _count(found[2]) or new < _count(found[4])
    return short and not (body and body[-1][:1] in (b" ", b"\\"))


def _right(found: re.Match[bytes], header: bytes, body: list[bytes]) -> bytes:
    """The header with the counts of its lines; nothing where it has them, or has no lines at all."""
    old, new = _sides(body)
    if not body or (old, new) == (_count(found[2]), _count(found[4])):
        return b""
    return b"@@ -%b,%d +%b,%d @@" % (found[1], old, found[3], new) + header[found.end() :]
