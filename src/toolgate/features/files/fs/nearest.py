"""Nearest lines: for a text that a file does not contain, where something like it stands and how that differs.

Most misses are white space (tabs, indentation, blanks at an end) or one word that has changed since it was read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_LINES = 20_000
"""Lines of a file that are looked through."""
MAX_SHOWN = 8
MAX_COLUMNS = 200
ALIKE = 0.6
_WORD = re.compile(r"\w{3,}")
_NAMES = {" ": "blank", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class Near:
    line: int
    end: int
    difference: str
    """In words; what the file has and what was looked for."""
    lines: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"line {self.line}" if self.line == self.end else f"lines {self.line}-{self.end}"

    @property
    def shown(self) -> str:
        """As they stand there, under the header that `cat -n` would give."""
        rest = self.end - self.line + 1 - len(self.lines)
        numbered = [f"{self.line + at}\t{text[:MAX_COLUMNS]}" for at, text in enumerate(self.lines)]
        return "\n".join([*numbered, f"… {rest} more"] if rest > 0 else numbered)


def nearest(text: str, find: str) -> Near | None:
    """Where it stands but for white space, or what is most like its longest line; None where nothing is."""
    lines = [line.removesuffix("\r") for line in text.split("\n")[:MAX_LINES]]
    wanted = [line.removesuffix("\r") for line in find.strip("\n").split("\n")]
    if not any(map(str.strip, wanted)) or len(wanted) > len(lines):
        return None
    start = _same_words(lines, wanted)
    if start is not None:
        return _near(lines, wanted, start, "only white space differs: ")
    start = _most_alike(lines, wanted)
    return None if start is None else _near(lines, wanted, start, "")


def _near(lines: Sequence[str], wanted: Sequence[str], start: int, how: str) -> Near:
    end = min(start + len(wanted), len(lines))
    found = lines[start:end]
    ill = (
        (there, given, at)
        for at, (there, given) in enumerate(zip(found, wanted, strict=False))
        if not _fits(there, given, at == 0, at == len(wanted) - 1)
    )
    difference = next(
        (_differs(there, given, start + at + 1) for there, given, at in ill), "the ends of lines"
    )
    return Near(start + 1, end, how + difference, tuple(found[:MAX_SHOWN]))


def _words(line: str) -> str:
    return " ".join(line.split())


def _same_words(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The first and the last line of what was looked for may be parts of lines."""
    there, given = [_words(line) for line in lines], [_words(line) for line in wanted]
    if len(given) == 1:
        return next((at for at, line in enumerate(there) if given[0] in line), None)
    for at in range(len(there) - len(given) + 1):
        if (
            there[at].endswith(given[0])
            and there[at + len(given) - 1].startswith(given[-1])
            and there[at + 1 : at + len(given) - 1] == given[1:-1]
        ):
            return at
    return None


def _most_alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    given = max(wanted, key=lambda line: len(line.strip()))
    words = set(_WORD.findall(given))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(given.strip()[:MAX_COLUMNS])
    best, place = ALIKE, None
    for at, line in enumerate(lines):
        if words and words.isdisjoint(_WORD.findall(line)):
            continue
        matcher.set_seq1(line.strip()[:MAX_COLUMNS])
        if (
            matcher.real_quick_ratio() > best
            and matcher.quick_ratio() > best
            and (like := matcher.ratio()) > best
        ):
            best, place = like, at
    return None if place is None else max(place - list(wanted).index(given), 0)


def _fits(there: str, given: str, first: bool, last: bool) -> bool:
    """What was looked for may begin and end within lines."""
    if first and last:
        return given in there
    return there.endswith(given) if first else there.startswith(given) if last else there == given


def _differs(there: str, given: str, line: int) -> str:
    body, wanted = there.strip(), given.strip()
    if wanted in body or body in wanted:
        before, wants = _margin(there), _margin(given)
        if before != wants:
            return f"line {line} begins with {_said(before)}, not with {_said(wants)}"
        after, wants = there[len(there.rstrip()) :], given[len(given.rstrip()) :]
        if after != wants:
            return f"line {line} ends with {_said(after)}, not with {_said(wants)}"
    return f"line {line} is {_quoted(body)}, not {_quoted(wanted)}"


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _said(space: str) -> str:
    """`4 blanks`, `1 tab and 2 blanks`."""
    runs = [found[0] for found in re.finditer(r"(.)\1*", space, re.S)]
    told = [
        f"{len(run)} {_NAMES.get(run[0], f'U+{ord(run[0]):04X}')}{'s' * (len(run) > 1)}" for run in runs[:4]
    ]
    return " and ".join(told) or "no white space"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MAX_COLUMNS else text[: MAX_COLUMNS - 1] + "…")
