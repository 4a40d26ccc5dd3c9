"""A question as the page shows it: one sentence, what would happen exactly, and all that helps to decide."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from toolgate.core.effects import READS, WRITES, Effects, verb
from toolgate.core.ports import Question
from toolgate.faces import diffs
from toolgate.faces.console.colours import SECONDS, Painter
from toolgate.faces.console.marks import Block, Colours, Span, blocks, draw
from toolgate.faces.console.remarks import Remark, remarks
from toolgate.faces.console.text import plural
from toolgate.faces.diffs import FileDiff
from toolgate.faces.words import lookalikes

AT_ONCE = 600
"""Lines shown before "show all"; whoever has not seen all cannot approve."""
MOST_LINES = 20_000
MOST_CHARS = 1_000_000
_WORDS = {"create": "create", "delete": "delete", "modify": "change", "rename": "rename"}
"""More than this no page shows, and nobody reads: it is answered where it can be looked at with other tools."""
_PROGRAMS = {"exec.python": "x.py", "exec.javascript": "x.js", "exec.shell": "x.sh"}


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


@dataclass
class Argument:
    name: str
    value: str = ""
    """On one line, as JSON."""
    lines: list[Markup] = field(default_factory=list)
    """A text of several lines, line by line."""
    words: list[str] = field(default_factory=list)
    """A list of texts, such as argv: one by one."""
    told: str = ""
    """Instead of a value that the diff shows anyway."""

    @property
    def empty(self) -> bool:
        return self.value in ("null", '""')


@dataclass
class QuestionView:
    question: Question
    sentence: str
    title: str
    """The sentence without who: `change src/app.py`."""
    files: list[FileView]
    plain: list[Markup]
    """A preview that is no diff, line by line."""
    arguments: list[Argument]
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

    @property
    def complete(self) -> bool:
        return not self.cut and not self.too_large


async def view(question: Question, painter: Painter, *, whole: bool = False) -> QuestionView:
    parsed = diffs.parse(question.preview) if question.preview else []
    plain = question.preview.split("\n") if question.preview and not parsed else []
    arguments = await _arguments(question, painter, bool(parsed))
    total = sum(file.size for file in parsed) + len(plain)
    large = too_large(question)
    whole = whole and not large
    shown = parsed if whole else first(parsed, AT_ONCE)
    kept = plain if whole else plain[:AT_ONCE]
    cut = total - sum(file.size for file in shown) - len(kept)
    long = sum(len(each.lines) for each in arguments)
    what = deed(question.tool, parsed)
    return QuestionView(
        question, f"{question.persona} wants to {what}", what, await drawn(shown, painter),
        [draw(line, ()) for line in kept], arguments, touches(question.effects), _mounts(question, parsed),
        list(getattr(question, "findings", ())), total + long, cut, large,
        len(parsed), sum(file.added for file in parsed), sum(file.removed for file in parsed),
        await asyncio.to_thread(lookalikes, question),
    )  # fmt: skip


def too_large(question: Question) -> bool:
    """Whether no page can show it in full, so that no page may approve it."""
    given = (value if isinstance(value, str) else _json(value, 2) for value in question.args.values())
    texts = [question.preview, *given]
    return any(len(text) > MOST_CHARS or text.count("\n") > MOST_LINES for text in texts)


def first(files: Sequence[FileDiff], most: int) -> list[FileDiff]:
    """Whole hunks only, as many as fit; the first even if it alone is too long, cut at the limit."""
    kept: list[FileDiff] = []
    for file in files:
        if most <= 0:
            break
        if file.size <= most:
            kept.append(file)
            most -= file.size
            continue
        notes = file.notes[:most]
        part = FileDiff(file.path, file.op, file.kind, file.modes, notes, old_path=file.old_path)
        most -= 1 + len(notes)
        for hunk in file.hunks:
            if most > 1:
                part.hunks.append(diffs.Hunk(hunk.head, hunk.lines[: most - 1]))
                most -= 1 + len(part.hunks[-1].lines)
        kept.append(part)
        break
    return kept


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


def deed(tool: str, files: Sequence[FileDiff]) -> str:
    """What it wants, in plain words: `change 3 files in src/`."""
    real = [file for file in files if file.kind == "file"] or list(files)
    if not real:
        return f"call {tool}"
    ops = {file.op for file in real}
    word = _WORDS[ops.pop()] if len(ops) == 1 else "change"
    if len(real) == 1 and real[0].old_path:
        return f"{word} {real[0].old_path} to {real[0].path}"
    if len(real) == 1:
        return f"{word} {real[0].path}" + ("/" if real[0].kind == "directory" else "")
    shared = _shared([file.path for file in real])
    if len(real) == 2 and not shared:
        return f"{word} {real[0].path} and {real[1].path}"
    return f"{word} {plural(len(real), 'file')}" + (f" in {shared}/" if shared else "")


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


async def _arguments(question: Question, painter: Painter, has_diff: bool) -> list[Argument]:
    return [
        await _argument(question, name, value, painter, has_diff) for name, value in question.args.items()
    ]


async def _argument(question: Question, name: str, value: Any, painter: Painter, has_diff: bool) -> Argument:
    if isinstance(value, str) and "\n" in value.rstrip("\n"):
        if has_diff and name in question.repeats:
            return Argument(name, told=f"{len(value):,} characters, shown as the change")
        return Argument(name, lines=await code(_PROGRAMS.get(question.tool, ""), value, painter))
    if isinstance(value, str) and has_diff and name in question.repeats and len(value) > 80:
        return Argument(name, told=f"{len(value):,} characters, shown as the change")
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return Argument(name, words=[_json(item) for item in value])
    return Argument(name, _json(value)) if not isinstance(value, Mapping) else _nested(name, value)


def _nested(name: str, value: Mapping[str, Any]) -> Argument:
    return Argument(name, lines=[draw(line, ()) for line in _json(value, 2).split("\n")])


async def code(name: str, text: str, painter: Painter) -> list[Markup]:
    spans: dict[int, list[Span]] = {}
    for at, span in await painter.text(name, text, time.monotonic() + SECONDS) if name else ():
        spans.setdefault(at, []).append(span)
    return [draw(line, spans.get(at, ())) for at, line in enumerate(text.split("\n"))]


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
