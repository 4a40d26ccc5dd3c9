"""A question as the page shows it: one sentence, what would happen exactly, and all that helps to decide."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any

from markupsafe import Markup

from toolgate.core.apart import apart
from toolgate.core.display import visible
from toolgate.core.effects import READS, WRITES, Effects, verb
from toolgate.core.ports import Question
from toolgate.faces.console.diff_view import (
    COLOURING_S,
    LONG,
    MARKUP,
    ROOM,
    FileView,
    Painter,
    drawn,
    first,
    weight,
)
from toolgate.faces.console.markup import Span, draw, plural
from toolgate.kits import diffs, pieces
from toolgate.kits.diffs import FileDiff
from toolgate.kits.words import changes_nothing, lookalikes, program_in_words

AT_ONCE = 600
"""Lines shown before "show all"; whoever has not seen all cannot approve."""
MOST_LINES = 20_000
MOST_CHARS = 1_000_000
MOST_ODD = 20_000
"""Characters that cannot be seen, which take ninety others to be shown."""
CODE = 64 << 10
"""Characters of a program that are coloured."""
SHORT = 4000
"""Characters of a value that stands on one line."""
_SPELLED = len("⟨U+XXXX⟩") - 1
_WORDS = {"create": "create", "delete": "delete", "modify": "change", "rename": "rename"}
"""More than this no page shows, and nobody reads: it is answered where it can be looked at with other tools."""
_PROGRAMS = {"exec.python": "x.py", "exec.javascript": "x.js", "exec.shell": "x.sh"}


@dataclass
class ShownArgument:
    name: str
    value: str = ""
    """On one line, as JSON."""
    lines: list[Markup] = field(default_factory=list)
    """A text of several lines, line by line."""
    numbers: list[int] = field(default_factory=list)
    """Of those lines, where some are folded: 0 for the rest of one."""
    words: list[str] = field(default_factory=list)
    """A list of texts, such as argv: one by one."""
    told: str = ""
    """Instead of a value that the diff shows anyway."""
    cut: int = 0
    """Lines that are not shown, or pieces of lines."""

    @property
    def empty(self) -> bool:
        return self.value in ("null", '""', "[]", "{}")


@dataclass
class QuestionView:
    question: Question
    sentence: str
    title: str
    """The sentence without who: `change src/app.py`."""
    files: list[FileView]
    plain: list[Markup]
    """A preview that is no diff, line by line."""
    arguments: list[ShownArgument]
    touches: list[str]
    mounts: list[str]
    findings: list[Mapping[str, Any]]
    lines: int
    cut: int
    """Lines that are not shown yet."""
    too_large: bool
    names: int
    """How many files there are, how many lines come and go: of all of it, whatever is shown."""
    added: int
    removed: int
    alike: list[str]
    """What may be taken for something else, in words."""
    read: bool = False
    """Too large for a page, and this session has been through all of its pieces."""

    @property
    def lasting(self) -> bool:
        """Whether anything of it stays, which might be taken back."""
        return bool(self.question.unkept) or not changes_nothing(self.question.effects)

    @property
    def complete(self) -> bool:
        return self.read or (not self.cut and not self.too_large)


async def view(question: Question, painter: Painter, *, whole: bool = False) -> QuestionView:
    """Measured before it is built; what is built is no more than is shown."""
    large = await apart(too_large, question)
    whole = whole and not large
    parsed = await apart(diffs.parse, question.preview) if question.preview else []
    plain = pieces.preview_beside_arguments(question).split("\n") if question.preview and not parsed else []
    arguments = await _arguments(
        question, painter, bool(parsed), ArgumentRoom(AT_ONCE, ROOM) if not whole else ArgumentRoom()
    )
    total = sum(file.size for file in parsed) + len(plain)
    shown = parsed if whole else first(parsed, AT_ONCE, ROOM)
    kept = plain if whole else _beginning(plain)
    cut = total - sum(file.size for file in shown) - len(kept)
    cut += sum(each.cut for each in arguments)
    long = sum(len(each.lines) for each in arguments)
    what = deed(question.tool, parsed, question.args)
    return QuestionView(
        question, f"{question.persona} wants to {what}", what, await drawn(shown, painter),
        [draw(line, ()) for line in kept], arguments, touches(question.effects), _mounts(question, parsed),
        list(getattr(question, "findings", ())), total + long, cut, large,
        len(parsed), sum(file.added for file in parsed), sum(file.removed for file in parsed),
        await asyncio.to_thread(lookalikes, question),
    )  # fmt: skip


def too_large(question: Question) -> bool:
    """Whether no page can show it in full, so that no page may approve it."""
    lines, chars = pieces.extent_of(question)
    if lines > MOST_LINES or chars > MOST_CHARS:
        return True
    every = chain.from_iterable(map(pieces.lines, (question.preview, *question.args.values())))
    return sum(len(visible(line, keep_lines=True)) - len(line) for line in every) > MOST_ODD * _SPELLED


def _beginning(plain: Sequence[str]) -> list[str]:
    """Of a text that is no diff."""
    kept, room = [], ROOM
    for line in plain[:AT_ONCE]:
        room -= weight(line)
        if room < 0 or len(line) > LONG:
            break
        kept.append(line)
    return kept


def deed(tool: str, files: Sequence[FileDiff], args: Mapping[str, Any]) -> str:
    """What it wants, in plain words: `change 3 files in src/`, `run pytest -q`."""
    real = [file for file in files if file.kind == "file"] or list(files)
    if not real:
        return program_in_words(args) or f"call {tool}"
    ops = {file.op for file in real}
    word = _WORDS[ops.pop()] if len(ops) == 1 else "change"
    if len(real) == 1 and real[0].old_path:
        return f"{word} {real[0].old_path} to {real[0].path}"
    if len(real) == 1:
        return f"{word} {real[0].path}" + ("/" if real[0].kind == "directory" else "")
    shared = _shared([file.path for file in real])
    if shared:
        return f"{word} {plural(len(real), 'file')} in {shared}/"
    rest = f", {real[1].path} and {len(real) - 2} more" if len(real) > 2 else f" and {real[1].path}"
    return f"{word} {real[0].path}{rest}"


def _shared(paths: Sequence[str]) -> str:
    parts = [path.split("/")[:-1] for path in paths]
    common = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return "/".join(common)


def touches(effects: Effects) -> list[str]:
    return [f"reads {READS.get(word, word)}" for word in effects.reads] + [
        f"{verb(word)} {WRITES.get(word, word)}" for word in effects.writes
    ]


def _mounts(question: Question, files: Sequence[FileDiff]) -> list[str]:
    """By what the change names; a plain path is the project's."""
    paths = (path for file in files for path in (file.path, file.old_path) if path)
    names = {path.partition(":")[0] if ":" in path else "project" for path in paths}
    return sorted(names)


@dataclass
class ArgumentRoom:
    """What is left for arguments, line by line and in characters of HTML; without bounds for "show all"."""

    lines: float = math.inf
    chars: float = math.inf

    def takes(self, html: str) -> bool:
        self.lines -= 1
        self.chars -= len(html) + MARKUP
        return self.lines >= 0 and self.chars >= 0


async def _arguments(
    question: Question, painter: Painter, has_diff: bool, room: ArgumentRoom
) -> list[ShownArgument]:
    """The short ones first get their room: a long one must not hide them."""
    given = question.args
    order = sorted(given, key=lambda name: pieces.extent(given[name]).chars)
    made = {name: await _argument(question, name, given[name], painter, has_diff, room) for name in order}
    return [made[name] for name in given]


async def _argument(
    question: Question, name: str, value: Any, painter: Painter, has_diff: bool, room: ArgumentRoom
) -> ShownArgument:
    if isinstance(value, str) and has_diff and name in question.repeats and pieces.is_long(value):
        return ShownArgument(name, told=f"{len(value):,} characters, shown as the change")
    lines = value.split("\n") if isinstance(value, str) and len(value) <= CODE else []
    if len(lines) > 1 and "\n" in value.rstrip("\n") and max(map(len, lines)) <= pieces.WIDE:
        drawn = await code(_PROGRAMS.get(question.tool, ""), value, painter)
        kept = list(takewhile(room.takes, drawn))
        return ShownArgument(name, lines=kept, cut=len(drawn) - len(kept))
    return await apart(_plain_argument, name, value, room)


def _plain_argument(name: str, value: Any, room: ArgumentRoom) -> ShownArgument:
    """Cut by lines and by characters: a line of a megabyte counts for what it is."""
    if pieces.extent(value).chars <= SHORT and not isinstance(value, Mapping):
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            words = list(takewhile(room.takes, map(pieces.as_json, value)))
            return ShownArgument(name, words=words, cut=len(value) - len(words))
        if not isinstance(value, str) or "\n" not in value.rstrip("\n"):
            shown = pieces.as_json(value)
            return ShownArgument(name, shown) if room.takes(shown) else ShownArgument(name, cut=1)
    return folded(name, value, room)


def folded(name: str, value: Any, room: ArgumentRoom) -> ShownArgument:
    """Its JSON or its text, piece by piece, as far as there is room."""
    made = ShownArgument(name)
    for piece in pieces.folded(name, value):
        line = draw(piece.text, ())
        if not room.takes(line):
            made.cut = pieces.count(value) - len(made.lines)
            break
        made.lines.append(line)
        made.numbers.append(piece.number)
    return made


async def code(name: str, text: str, painter: Painter) -> list[Markup]:
    spans: dict[int, list[Span]] = {}
    for at, span in await painter.text(name, text, time.monotonic() + COLOURING_S) if name else ():
        spans.setdefault(at, []).append(span)
    return [draw(line, spans.get(at, ())) for at, line in enumerate(text.split("\n"))]
