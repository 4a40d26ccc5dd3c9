"""What git prints about changed files (`--raw --numstat -p`), as values. Blocked names are dropped here, unread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from toolgate.workspace.git.names import quote, unquote

Kind = Literal["added", "modified", "deleted", "renamed"]
LineKind = Literal["context", "addition", "deletion"]
Visible = Callable[[str], bool]
"""Whether a path in the repository may be shown at all."""

_STATUS: dict[str, Kind] = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "modified"}
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
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
    size: int = 0


@dataclass(slots=True)
class FileDiff:
    path: str
    status: Kind
    old_path: str | None = None
    insertions: int = 0
    deletions: int = 0
    binary: bool = False
    submodule: bool = False
    modes: tuple[str, str] = ("", "")
    ids: tuple[str, str] = ("", "")
    encoding: str = "utf-8"
    hunks: list[Hunk] = field(default_factory=list)


@dataclass(slots=True)
class Changed:
    files: list[FileDiff] = field(default_factory=list)
    left_out: int = 0
    """Files that may not be shown. Only their number is told."""
    whole: bool = True


def parse(data: bytes, visible: Visible, *, whole: bool = True, below: str = "") -> Changed:
    """One comparison, or of it what touches the path `below`. Output that was cut (`whole` false) gives the lines that
    are complete."""
    raw, counts, patch = _split(data if whole else data[: data.rfind(b"\n") + 1])
    changed = Changed(whole=whole)
    sections = _sections(patch)
    section = next(sections, None)
    for index, line in enumerate(raw):
        file = _file(line)
        if index < len(counts):
            _count(file, counts[index])
        parts: list[bytes] = []
        while section is not None and section[0] in _headers(file):
            parts.append(section[1])
            section = next(sections, None)
        if not (_within(file.path, below) or _within(file.old_path or "", below)):
            continue
        if visible(file.path) and (file.old_path is None or visible(file.old_path)):
            _read_hunks(file, parts)
            changed.files.append(file)
        else:
            changed.left_out += 1
    return changed


def _within(path: str, below: str) -> bool:
    return not below or path == below or path.startswith(f"{below}/")


def _split(data: bytes) -> tuple[list[bytes], list[bytes], bytes]:
    """Lines that begin with a colon, lines of numbers, and from the first `diff --git` on the patch."""
    raw: list[bytes] = []
    counts: list[bytes] = []
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end]
        if line.startswith(b"diff --git "):
            return raw, counts, data[at:]
        if line.startswith(b":"):
            raw.append(line)
        elif line:
            counts.append(line)
        at = end + 1
    return raw, counts, b""


def _sections(patch: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The part of each file: its header line and what follows. Lines of content never begin with a `d`."""
    if not patch:
        return
    starts = [0]
    starts += [found.start() + 1 for found in re.finditer(rb"\ndiff --git ", patch)]
    for start, end in zip(starts, [*starts[1:], len(patch)], strict=True):
        header, _, rest = patch[start:end].partition(b"\n")
        yield header, rest


def _file(line: bytes) -> FileDiff:
    head, *names = line.split(b"\t")
    old_mode, new_mode, old_id, new_id, status = head[1:].decode("ascii").split(" ")
    kind = _STATUS.get(status[:1], "modified")
    path = unquote(names[-1])
    return FileDiff(
        path, kind, unquote(names[0]) if kind == "renamed" else None,
        submodule="160000" in (old_mode, new_mode), modes=(old_mode, new_mode), ids=(old_id, new_id),
    )  # fmt: skip


def _count(file: FileDiff, line: bytes) -> None:
    added, removed = line.split(b"\t", 2)[:2]
    if added == b"-":
        file.binary = True
    else:
        file.insertions, file.deletions = int(added), int(removed)


def _headers(file: FileDiff) -> tuple[bytes, ...]:
    """A file that turned into a link has two sections with the same header; a renamed one has both names."""
    old = quote("a/" + (file.old_path or file.path))
    return (b"diff --git %s %s" % (old, quote("b/" + file.path)),)


def _read_hunks(file: FileDiff, parts: list[bytes]) -> None:
    for part in parts:
        text = _decoder(file, part)
        hunk: Hunk | None = None
        old = new = 0
        for line in part.split(b"\n"):
            if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[3])
                hunk = Hunk(old, int(found[2] or 1), new, int(found[4] or 1), text(found[5]))
                file.hunks.append(hunk)
            elif hunk is not None and line:
                hunk.size += len(line) + 1
                old, new = _read_line(hunk, line, text, old, new)


def _read_line(hunk: Hunk, line: bytes, text: Callable[[bytes], str], old: int, new: int) -> tuple[int, int]:
    kind = _LINES.get(line[:1])
    if kind is None:  # `\\ No newline at end of file`
        hunk.lines[-1] = replace(hunk.lines[-1], no_newline=True)
        return old, new
    hunk.lines.append(Line(kind, old if kind == "deletion" else new, text(line[1:])))
    return old + (kind != "addition"), new + (kind != "deletion")


def _decoder(file: FileDiff, part: bytes) -> Callable[[bytes], str]:
    """UTF-8 if all of it is; else one byte per character, which loses nothing, and the result says so."""
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        file.encoding = "latin-1"
    return lambda raw: raw.decode(file.encoding)
