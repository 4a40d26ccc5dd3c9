"""The hunks of one file's part of a patch, as many as any answer can show; of the rest, how many there are.

A patch of 8 MB may have millions of lines, of which the tools show some hundred.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

LineKind = Literal["context", "addition", "deletion"]
MOST_LINES = 2000
MOST_BYTES = 64 << 10
"""Of one comparison. The tools show at most 50 KiB of a diff, and a line costs them more than 50 characters of 80,000."""

_HUNK = re.compile(rb"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@ ?(.*)")
_NEXT = b"\n@@ -"
_LINES: dict[bytes, LineKind] = {b" ": "context", b"+": "addition", b"-": "deletion"}


@dataclass(frozen=True, slots=True)
class Line:
    type: LineKind
    line_number: int
    """In the new file; in the old one for a deletion."""
    content: str
    no_newline: bool = False


@dataclass(slots=True)
class Hunk:
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    section: str = ""
    """The function or heading git found above it."""
    lines: list[Line] = field(default_factory=list)
    unread: int = 0
    """Lines that follow these."""
    size: int = 0

    @property
    def count(self) -> int:
        return len(self.lines) + self.unread


@dataclass(slots=True)
class Hunks:
    """Reads one comparison, file by file."""

    lines_left: int = MOST_LINES
    bytes_left: int = MOST_BYTES

    @property
    def full(self) -> bool:
        return self.lines_left <= 0 or self.bytes_left <= 0

    def read(self, part: bytes, text: Callable[[bytes], str]) -> tuple[list[Hunk], int]:
        """A file's hunks, and how many more there are."""
        found: list[Hunk] = []
        at = 0 if part.startswith(_NEXT[1:]) else part.find(_NEXT) + 1
        while part.startswith(_NEXT[1:], at):
            if self.full:
                return found, 1 + part.count(_NEXT, at)
            end = part.find(_NEXT, at)
            end = len(part) if end < 0 else end + 1
            hunk = self._hunk(part, at, end, text)
            if hunk is not None:
                found.append(hunk)
            at = end
        return found, 0

    def _hunk(self, part: bytes, at: int, end: int, text: Callable[[bytes], str]) -> Hunk | None:
        head, _, _ = part[at : min(end, at + 4096)].partition(b"\n")
        numbers = _HUNK.match(head)
        at = part.find(b"\n", at, end) + 1
        if numbers is None or not at:
            return None
        old, new = int(numbers[1]), int(numbers[3])
        hunk = Hunk(old, int(numbers[2] or 1), new, int(numbers[4] or 1), text(numbers[5]), size=end - at)
        while at < end and not self.full:
            stop = part.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            self.lines_left -= 1
            self.bytes_left -= stop - at + 1
            if self.bytes_left < 0:
                break
            old, new = _read_line(hunk, part[at:stop], text, old, new)
            at = stop + 1
        hunk.unread = part.count(b"\n", at, end) - part.count(b"\n\\ ", at, end)
        return hunk


def _read_line(hunk: Hunk, line: bytes, text: Callable[[bytes], str], old: int, new: int) -> tuple[int, int]:
    kind = _LINES.get(line[:1])
    if kind is None:  # `\\ No newline at end of file`
        if hunk.lines:
            hunk.lines[-1] = replace(hunk.lines[-1], no_newline=True)
        return old, new
    hunk.lines.append(Line(kind, old if kind == "deletion" else new, text(line[1:])))
    return old + (kind != "addition"), new + (kind != "deletion")
