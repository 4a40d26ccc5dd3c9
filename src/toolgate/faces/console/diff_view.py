"""Diffs as pages show them: cut to a size, coloured, with remarks on what a reader could miss.

Colours come from the parsing worker: lexers were not written for hostile text, so none runs in this process.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from toolgate.core.display import visible
from toolgate.faces.console.markup import Block, Colours, Span, blocks, name_of, plural, texts
from toolgate.kits import diffs
from toolgate.kits.diffs import FileDiff, Line
from toolgate.workspace.outline.outline import Outliner

ROOM = 100_000
"""Characters of HTML for the arguments, and as many for the change, before "show all": a page is read in a moment."""
LONG = 2000
"""Characters of a line of a change that are shown before "show all"."""
MARKUP = 120
"""What stands around a line."""
MAX_COLOURED_CHARS = 64 << 10
COLOURING_S = 1.5
"""How long a page waits for its colours, all files together."""
KEPT_COLOURS = 200
_CLASSES = (
    ("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "m"),
    ("Name.Function", "nf"), ("Name.Class", "nf"), ("Name.Decorator", "nd"), ("Name.Builtin", "nb"),
    ("Name.Tag", "k"), ("Name.Attribute", "nd"), ("Operator.Word", "k"), ("Generic.Heading", "k"),
)  # fmt: skip
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NAMED = 5


@dataclass
class FileView:
    path: str
    op: str
    kind: str
    added: int
    removed: int
    remarks: list[Remark]
    hunks: list[tuple[str, list[Block]]]
    bytes: list[str]
    """Of a binary file, in hexadecimal."""


def first(files: Sequence[FileDiff], most: int, room: int = ROOM) -> list[FileDiff]:
    """Whole files, as many as fit; then one cut at the limit."""
    kept: list[FileDiff] = []
    for file in files:
        if most <= 0 or room <= 0:
            break
        fits, left = _shown(list(file.lines), most, room - MARKUP * (1 + len(file.hunks)))
        if file.size <= most and left > 0:
            kept.append(file)
            most, room = most - file.size, left
            continue
        notes = file.notes[:most]
        part = FileDiff(file.path, file.op, file.kind, file.modes, notes, old_path=file.old_path)
        most -= 1 + len(notes)
        for hunk in file.hunks:
            if most > 1 and room > 0:
                fits, room = _shown(hunk.lines, most - 1, room)
                part.hunks.append(diffs.Hunk(hunk.head, fits))
                most -= 1 + len(fits)
        kept.append(part)
        break
    return kept


def weight(line: str) -> int:
    """About what a line takes as HTML."""
    plain = line.isascii() and line.isprintable()
    return MARKUP + (
        len(line) if plain else len(line) + 12 * (len(visible(line, keep_lines=True)) - len(line))
    )


def _shown(lines: Sequence[diffs.Line], most: int, room: int) -> tuple[list[diffs.Line], int]:
    """Those that fit, and the room that is left: none where one did not."""
    kept: list[diffs.Line] = []
    for line in lines[:most]:
        room -= weight(line.text)
        if room < 0 or len(line.text) > LONG:
            return kept, 0
        kept.append(line)
    return kept, room


async def drawn(files: Sequence[FileDiff], painter: Painter) -> list[FileView]:
    colours = await painter.files(files)
    return await asyncio.to_thread(_drawn, files, colours)  # a long one must not hold up the calls of others


def _drawn(files: Sequence[FileDiff], colours: Sequence[Colours]) -> list[FileView]:
    return [
        FileView(
            file.path, file.op, file.kind, file.added, file.removed, remarks(file),
            [(hunk.head, blocks(hunk, colour)) for hunk in file.hunks], file.bytes,
        )
        for file, colour in zip(files, colours, strict=True)
    ]  # fmt: skip


class Painter:
    """Asks for each text once; what is late stays plain."""

    def __init__(self) -> None:
        self._outliner = Outliner()
        self._known: OrderedDict[tuple[str, str], list[tuple[int, Span]]] = OrderedDict()

    def close(self) -> None:
        self._outliner.close()

    async def files(self, files: Sequence[FileDiff]) -> list[Colours]:
        until = time.monotonic() + COLOURING_S
        return [await self._file(file, until) for file in files]

    async def _file(self, file: FileDiff, until: float) -> Colours:
        found: dict[tuple[str, int], list[Span]] = {}
        for side, lines in texts(file).items():
            for at, span in await self.text(file.path, "\n".join(line.text for line in lines), until):
                if at < len(lines):
                    number = lines[at].old if side == "old" else lines[at].new
                    found.setdefault((side, number), []).append(span)
        return found

    async def text(self, path: str, text: str, until: float) -> list[tuple[int, Span]]:
        """Line from 0, and what to colour in it."""
        name = PurePosixPath(path).name
        if not text or len(text) > MAX_COLOURED_CHARS or time.monotonic() > until:
            return []
        key = (PurePosixPath(path).suffix or name, text)
        if key not in self._known:
            sent = text.replace("\r", " ")  # a lexer would take it for the end of a line
            said = await asyncio.to_thread(self._outliner.tokens, name, sent, 0)
            self._known[key] = [
                (line, (column - 1, column - 1 + len(part), dress))
                for line, column, part, kind in said
                if (dress := _class(kind))
            ]
            while len(self._known) > KEPT_COLOURS:
                self._known.popitem(last=False)
        return self._known[key]


def _class(kind: str) -> str:
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")


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
