"""A unified diff, taken apart by its own counts: a line that only looks like a header stays a line.

What does not parse to its last line is no diff, and is shown as the text that it is. Nothing is ever left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolgate.core.diff import HEX
from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass, field

_HUNK = late_pattern(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE = late_pattern(r"(old mode|new mode|new file mode) ([0-7]{1,5})")
_RENAME = late_pattern(r"rename (from|to) (.+)")
_DIRECTORY = late_pattern(r"(create|remove) directory (.+)/")
_NOTES = (
    "before is ",
    "after is ",
    "binary: ",
    "(no change)",
    "(empty file)",
    "(the text is the same",
    "(content unchanged",
    HEX,
)
_DIGEST = late_pattern(r"sha256:[0-9a-f]{64}")
_NO_END = "\\ No newline at end of file"


@dataclass
class Line:
    mark: str
    """A space, `-` or `+`."""
    text: str
    old: int = 0
    new: int = 0
    ends: bool = True
    """False for a last line without a line break."""


@dataclass
class Hunk:
    head: str
    lines: list[Line] = field(default_factory=list)


@dataclass
class FileDiff:
    path: str
    op: str
    """create, delete, modify or rename."""
    kind: str = "file"
    modes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)
    old_path: str = ""
    """Of one that is renamed."""

    @property
    def remarks(self) -> list[str]:
        """What is noted about it, without its bytes."""
        return [note for note in self.notes if not note.startswith(HEX)]

    @property
    def digest(self) -> str:
        """Of a binary file, the hash of what it would hold."""
        found = (
            _DIGEST.search(note) for note in self.notes if note.startswith(("binary: ", "after is binary"))
        )
        return next((match[0] for match in found if match), "")

    @property
    def bytes(self) -> list[str]:
        """Of a binary file, line by line in hexadecimal."""
        return [note.removeprefix(HEX) for note in self.notes if note.startswith(HEX)]

    @property
    def lines(self) -> Iterator[Line]:
        for hunk in self.hunks:
            yield from hunk.lines

    @property
    def added(self) -> int:
        return sum(line.mark == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.mark == "-" for line in self.lines)

    @property
    def size(self) -> int:
        return 1 + len(self.notes) + sum(1 + len(hunk.lines) for hunk in self.hunks)


class _NotADiff(Exception):
    """Shown as plain text instead."""


def parse(text: str) -> list[FileDiff]:
    """The files of a diff; none if it is not one."""
    reader = _Reader(text.split("\n"))
    files: list[FileDiff] = []
    try:
        while not reader.done:
            files.append(_file(reader))
    except _NotADiff:
        return []
    return files


@dataclass
class _Reader:
    lines: list[str]
    at: int = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.lines)

    @property
    def line(self) -> str:
        if self.done:
            raise _NotADiff
        return self.lines[self.at]

    def take(self) -> str:
        line = self.line
        self.at += 1
        return line


def _file(reader: _Reader) -> FileDiff:
    directory = _DIRECTORY.fullmatch(reader.line)
    if directory:
        reader.take()
        op = "create" if directory[1] == "create" else "delete"
        return FileDiff(directory[2], op, "directory")
    ends: dict[str, str] = {}
    while end := _RENAME.fullmatch(reader.line):
        ends[end[1]] = end[2]
        reader.take()
    modes: dict[str, str] = {}
    while mode := _MODE.fullmatch(reader.line):
        modes[mode[1]] = mode[2]
        reader.take()
    old, new = _name(reader.take(), "--- ", "a/"), _name(reader.take(), "+++ ", "b/")
    if not old and not new:
        raise _NotADiff
    op = "rename" if ends else "modify" if old and new else "create" if new else "delete"
    if ends and ends != {"from": old, "to": new}:
        raise _NotADiff
    made = FileDiff(new or old, op, modes=modes, old_path=old if ends else "")
    while not reader.done and reader.line.startswith(_NOTES):
        made.notes.append(reader.take())
    while not reader.done and _HUNK.fullmatch(reader.line):
        made.hunks.append(_hunk(reader))
    return made


def _name(line: str, mark: str, side: str) -> str:
    """Empty where there is no file."""
    if not line.startswith(mark):
        raise _NotADiff
    name = line[len(mark) :]
    return "" if name == "/dev/null" else name.removeprefix(side)


def _hunk(reader: _Reader) -> Hunk:
    head = reader.take()
    found = _HUNK.fullmatch(head)
    assert found is not None
    old, new = int(found[1]), int(found[3])
    left, right = int(found[2] or "1"), int(found[4] or "1")
    made = Hunk(head)
    while left or right:
        text = reader.take()
        if text == _NO_END and made.lines:
            made.lines[-1].ends = False
            continue
        mark = text[:1]
        if mark not in (" ", "-", "+"):
            raise _NotADiff
        line = Line(mark, text[1:], old if mark != "+" else 0, new if mark != "-" else 0)
        old, left = (old + 1, left - 1) if line.old else (old, left)
        new, right = (new + 1, right - 1) if line.new else (new, right)
        if left < 0 or right < 0:
            raise _NotADiff
        made.lines.append(line)
    if not reader.done and reader.line == _NO_END:
        made.lines[-1].ends = False
        reader.take()
    return made
