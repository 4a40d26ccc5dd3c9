"""What git prints about changed files (`--raw --numstat -p`), as values. Blocked names are dropped here, unread.

A patch of 8 MB may have millions of lines, of which the tools show some hundred: of the hunks as many are kept as any
answer can show, and of the rest how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

_SHORT = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_LONG = {value: name for name, value in _SHORT.items()}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


def unquote(name: bytes) -> str:
    """A name from `--raw`, with bytes that are no UTF-8 as surrogates, as the file system gives them too."""
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        name = _ESCAPE.sub(_plain, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def quote(name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    if not any(byte < 32 or byte > 126 or byte in (34, 92) for byte in raw):
        return raw
    return b'"' + b"".join(map(_escaped, raw)) + b'"'


def shown(name: str) -> str:
    """A name that any encoding can hold; broken bytes are spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _plain(found: re.Match[bytes]) -> bytes:
    code = found[1].decode("latin-1")
    return bytes((_SHORT.get(code, ord(code)) if len(code) == 1 else int(code, 8) & 255,))


def _escaped(byte: int) -> bytes:
    if byte in _LONG:
        return b"\\" + _LONG[byte].encode()
    return bytes((byte,)) if 32 <= byte <= 126 else b"\\%03o" % byte


LineKind = Literal["context", "addition", "deletion"]
MOST_LINES = 2000
MOST_BYTES = 64 << 10
"""Of one comparison. The tools show at most 50 KiB of a diff, and a line costs them more than 50 characters of 80,000."""

_HUNK = re.compile(rb"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@ ?(.*)")
_NEXT = b"\n@@ -"
_LINES: dict[bytes, LineKind] = {b" ": "context", b"+": "addition", b"-": "deletion"}


@dataclass(frozen=True, slots=True)
class GitLine:
    type: LineKind
    line_number: int
    """In the new file; in the old one for a deletion."""
    content: str
    no_newline: bool = False


@dataclass(slots=True)
class GitHunk:
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    section: str = ""
    """The function or heading git found above it."""
    lines: list[GitLine] = field(default_factory=list)
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

    def read(self, part: bytes, text: Callable[[bytes], str]) -> tuple[list[GitHunk], int]:
        """A file's hunks, and how many more there are."""
        found: list[GitHunk] = []
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

    def _hunk(self, part: bytes, at: int, end: int, text: Callable[[bytes], str]) -> GitHunk | None:
        head, _, _ = part[at : min(end, at + 4096)].partition(b"\n")
        numbers = _HUNK.match(head)
        at = part.find(b"\n", at, end) + 1
        if numbers is None or not at:
            return None
        old, new = int(numbers[1]), int(numbers[3])
        hunk = GitHunk(old, int(numbers[2] or 1), new, int(numbers[4] or 1), text(numbers[5]), size=end - at)
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


def _read_line(
    hunk: GitHunk, line: bytes, text: Callable[[bytes], str], old: int, new: int
) -> tuple[int, int]:
    kind = _LINES.get(line[:1])
    if kind is None:  # `\\ No newline at end of file`
        if hunk.lines:
            hunk.lines[-1] = replace(hunk.lines[-1], no_newline=True)
        return old, new
    hunk.lines.append(GitLine(kind, old if kind == "deletion" else new, text(line[1:])))
    return old + (kind != "addition"), new + (kind != "deletion")


Kind = Literal["added", "modified", "deleted", "renamed"]
Visible = Callable[[str], bool]
"""Whether a path in the repository may be shown at all."""

_STATUS: dict[str, Kind] = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "modified"}


@dataclass(slots=True)
class GitFileDiff:
    path: str
    status: Kind
    old_path: str | None = None
    insertions: int = 0
    deletions: int = 0
    binary: bool = False
    submodule: bool = False
    turned: bool = False
    """From a file into a link or a submodule, or back."""
    modes: tuple[str, str] = ("", "")
    ids: tuple[str, str] = ("", "")
    encoding: str = "utf-8"
    hunks: list[GitHunk] = field(default_factory=list)
    unread: int = 0
    """Hunks that follow these: more than any answer has room for."""

    @property
    def hunk_count(self) -> int:
        return len(self.hunks) + self.unread


@dataclass(slots=True)
class Changed:
    files: list[GitFileDiff] = field(default_factory=list)
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
    hunks = Hunks()
    counted = iter(counts)
    count = next(counted, b"")
    for line in raw:
        file = _file(line)
        if count and _counts(count, file, line):
            _count(file, count)
            count = next(counted, b"")
        parts: list[bytes] = []
        for ids in _ids(file):
            if section is not None and _belongs(section, file, ids):
                parts.append(section[1])
                section = next(sections, None)
        if not (_within(file.path, below) or _within(file.old_path or "", below)):
            continue
        if visible(file.path) and (file.old_path is None or visible(file.old_path)):
            _read_hunks(file, parts, hunks)
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
            end = len(data) - data.endswith(b"\n\n")  # a log has a blank line after each commit
            return raw, counts, data[at:end]
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


def _file(line: bytes) -> GitFileDiff:
    head, *names = line.split(b"\t")
    old_mode, new_mode, old_id, new_id, status = head[1:].decode("ascii").split(" ")
    kind = _STATUS.get(status[:1], "modified")
    path = unquote(names[-1])
    return GitFileDiff(
        path, kind, unquote(names[0]) if kind == "renamed" else None,
        submodule="160000" in (old_mode, new_mode), turned=status[:1] == "T", modes=(old_mode, new_mode), ids=(old_id, new_id),
    )  # fmt: skip


def _counts(count: bytes, file: GitFileDiff, line: bytes) -> bool:
    """Whether these numbers are this file's. Of one in which only ignored white space changed, git prints none."""
    omitted = file.status == "modified" and not file.turned and file.modes[0] == file.modes[1]
    return not omitted or count.split(b"\t", 2)[-1] == line.rpartition(b"\t")[2]


def _count(file: GitFileDiff, line: bytes) -> None:
    added, removed = line.split(b"\t", 2)[:2]
    if added == b"-":
        file.binary = True
    else:
        file.insertions, file.deletions = int(added), int(removed)


def _ids(file: GitFileDiff) -> list[tuple[str, str]]:
    """The objects that a file's section is about. One that turned into a link has two: it went, and it came."""
    old, new = file.ids
    if not file.turned:
        return [(old, new)]
    none = "0" * len(old)
    return [(old, none), (none, new)]


def _belongs(section: tuple[bytes, bytes], file: GitFileDiff, ids: tuple[str, str]) -> bool:
    """Whether a section is this file's: two files may have the same first line, and one of them be blocked.

    A section that is nobody's is dropped, with all that follow.
    """
    first, rest = section
    old, new = quote("a/" + (file.old_path or file.path)), quote("b/" + file.path)
    if first != b"diff --git %s %s" % (old, new):
        return False
    said: dict[bytes, bytes] = {}
    for line in _heading(rest):
        for word in (b"rename from ", b"rename to ", b"index "):
            if line.startswith(word):
                said[word] = line[len(word) :]
    expected: dict[bytes, bytes] = {}
    if file.old_path is not None:
        expected |= {b"rename from ": quote(file.old_path), b"rename to ": quote(file.path)}
    if ids[0] != ids[1]:
        expected[b"index "] = f"{ids[0]}..{ids[1]}".encode()
        said[b"index "] = said.get(b"index ", b"").partition(b" ")[0]  # a mode may follow
    return said == expected


def _heading(rest: bytes) -> Iterator[bytes]:
    """The few lines before a section's content."""
    at = 0
    while at < len(rest) and not rest.startswith((b"--- ", b"@@ ", b"Binary "), at):
        end = rest.find(b"\n", at)
        end = len(rest) if end < 0 else end
        yield rest[at:end]
        at = end + 1


def _read_hunks(file: GitFileDiff, parts: list[bytes], hunks: Hunks) -> None:
    for part in parts:
        found, unread = hunks.read(part, _decoder(file, part))
        file.hunks += found
        file.unread += unread


def _decoder(file: GitFileDiff, part: bytes) -> Callable[[bytes], str]:
    """UTF-8 if all of it is; else one byte per character, which loses nothing, and the result says so."""
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        file.encoding = "latin-1"
    return lambda raw: raw.decode(file.encoding)
