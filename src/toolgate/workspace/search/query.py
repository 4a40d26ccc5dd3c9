"""What is searched for and what is found: the values that both engines share."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from toolgate.core.records import dataclass

EXCLUDED = (
    "node_modules", ".git", ".hg", ".svn", ".toolgate", "dist", "build", "target", ".venv", "venv", "__pycache__",
    ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".next", ".idea",
)  # fmt: skip
"""Directories that hold what others made; searched only when named or when the caller gives its own list."""
MAX_TEXT = 500
"""Characters of a line that are shown; a longer one is cut around its match."""


TOP_FILES = 5
Tell = Callable[[Sequence["Match"]], None]
"""Gets what was found in one file while the search goes on."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    pattern: str
    case_sensitive: bool = False
    max_matches: int = 100
    """0: only which files match is asked."""
    context_lines: int = 2
    top_files: int = TOP_FILES

    def cuts(self, lines: int, shown: int, files: int) -> bool:
        return lines > shown if self.max_matches else files > self.top_files


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matches, with the first place where it does."""

    file: str
    line: int
    column: int
    matched_text: str
    line_text: str
    context_before: tuple[str, ...]
    context_after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundMatches:
    matches: list[Match]
    total_matches: int
    files_searched: int
    truncated: bool
    files_matched: int = 0
    top: tuple[tuple[str, int], ...] = ()
    """The files with most matching lines, and how many: also of files that are not shown."""
    hidden: int | None = 0
    """Lines that match only where a secret stands; None where there may be some: counting them would tell of it."""


def top(counts: Iterable[tuple[str, int]], most: int) -> tuple[tuple[str, int], ...]:
    """Most first; of equal ones the one that came first."""
    return tuple(heapq.nlargest(most, counts, key=lambda each: each[1]))


@dataclass(frozen=True, slots=True)
class LineHit:
    """A matching line as an engine finds it: its number from 1, and the bytes of the line that match."""

    line: int
    start: int
    end: int


def make_match(file: str, hit: LineHit, raw: bytes, before: Iterable[bytes], after: Iterable[bytes]) -> Match:
    """The same words whichever engine found it: the line as it is in the file, and those around it."""
    return Match(
        file,
        hit.line,
        len(raw[: hit.start].decode("utf-8", "replace")) + 1,
        _short(raw[hit.start : hit.end]),
        _window(raw, hit),
        tuple(map(_short, before)),
        tuple(map(_short, after)),
    )


def _text(line: bytes) -> str:
    """Without the carriage return of a foreign line ending; broken UTF-8 shows as a replacement character."""
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _short(line: bytes) -> str:
    text = _text(line)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def _window(raw: bytes, hit: LineHit) -> str:
    """The line, or of a very long one the part around its match."""
    if len(raw) <= MAX_TEXT:
        return _text(raw)
    begin = max(hit.start - MAX_TEXT // 4, 0)
    while begin and begin < len(raw) and raw[begin] & 0xC0 == 0x80:  # not in the middle of a character
        begin -= 1
    part = _text(raw[begin : begin + 5 * MAX_TEXT])
    cut = len(part) > MAX_TEXT or begin + 5 * MAX_TEXT < len(raw)
    return ("…" if begin else "") + part[:MAX_TEXT] + ("…" if cut else "")
