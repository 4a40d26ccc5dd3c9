"""What a diff does that a reader could miss, in words: line ends, permissions, invisible characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from toolgate.core.display import visible
from toolgate.faces.console.text import name_of, plural
from toolgate.kits.diffs import FileDiff, Line

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NAMED = 5


@dataclass(frozen=True)
class Remark:
    text: str
    alarming: bool = False


def remarks(file: FileDiff) -> list[Remark]:
    return [
        *_place(file),
        *_modes(file),
        *_ends(file),
        *_last_line(file),
        *_invisible(file),
        *map(Remark, file.remarks),
    ]


def _place(file: FileDiff) -> Iterator[Remark]:
    if file.old_path:
        yield Remark(f"renamed from {file.old_path}")


def _modes(file: FileDiff) -> Iterator[Remark]:
    new = file.modes.get("new mode") or file.modes.get("new file mode")
    if new is None:
        return
    runs = bool(int(new, 8) & 0o111)
    old = file.modes.get("old mode")
    told = f"permissions change from {old} to {new}" if old else f"permissions are {new}"
    yield Remark(told + (": it can be run as a program" if runs else ""), runs)


def _ends(file: FileDiff) -> Iterator[Remark]:
    added = [line.text for line in file.lines if line.mark == "+"]
    removed = [line.text for line in file.lines if line.mark == "-"]
    now, before = (sum(text.endswith("\r") for text in side) for side in (added, removed))
    same = {text.rstrip("\r") for text in removed} & {text.rstrip("\r") for text in added}
    if now and not before:
        changed = "line ends change from LF to CRLF" if same else "new lines end in CRLF"
        yield Remark(f"{changed} ({plural(now, 'line')})")
    elif before and added and not now:
        yield Remark(f"line ends change from CRLF to LF ({plural(before, 'line')})")


def _last_line(file: FileDiff) -> Iterator[Remark]:
    open_ended = {line.mark for line in file.lines if not line.ends}
    if open_ended == {"+"}:
        yield Remark(
            "the last line has no line break any more" if file.removed else "the last line has no line break"
        )
    elif open_ended == {"-"} and file.added:
        yield Remark("the last line gets a line break")


def _invisible(file: FileDiff) -> Iterator[Remark]:
    """Only what is added: what was there before is shown in its place and is not news."""
    found: dict[str, list[Line]] = {}
    for line in file.lines:
        if line.mark == "+" and not (line.text.isascii() and line.text.isprintable()):
            for char in Counter(line.text.removesuffix("\r")):
                if visible(char, keep_lines=True) != char:
                    found.setdefault(char, []).append(line)
    for char, lines in sorted(found.items()):
        places = ", ".join(str(line.new) for line in lines[:_NAMED]) + ("…" if len(lines) > _NAMED else "")
        kind = "a character that reorders text" if char in _BIDI else "an invisible character"
        yield Remark(f"adds {kind}: {name_of(char)} in line {places}", True)
