"""`code.read`: a source file or some of its lines, with an outline of what was read and tokens for faces that colour it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

from toolgate.core.conceal import conceal_text
from toolgate.core.errors import InvalidArgs, TooLarge, Unavailable
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.core.tool import Tool, tool
from toolgate.features.code.arguments import (
    AsList,
    FirstLine,
    Highlight,
    LastLine,
    MaxLines,
    WithMetadata,
    WithOutline,
    reads_of,
)
from toolgate.features.code.fits import counted, fit_read
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import Outliner, Symbol, language_of
from toolgate.workspace.reading import note_file, open_to_read, read_steady
from toolgate.workspace.text import decode

# A source file as the code tools see it: opened by the mount's rules, decoded, in lines.

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Loaded:
    lines: list[str]
    status: os.stat_result
    encoding: str
    ended: bool
    """Whether its last line has a line end."""


def load(mounts: Mounts, path: MountPath) -> Loaded:
    with held(open_to_read(mounts, path)) as handle:
        status = os.fstat(handle)
        if status.st_size > MAX_BYTES:
            raise TooLarge(
                f"{path.shown!r} has {status.st_size:,} bytes, the limit is {MAX_BYTES:,}",
                "search it with code.search instead",
            )
        data, status = read_steady(handle, path.shown, MAX_BYTES)
        note_file(mounts, path, status, data)
    text = decode(data, path.shown)
    # before it is cut into lines and outlined: half a secret is not known as one
    lines = split_lines(conceal_text(text.text, mounts.secrets()))
    return Loaded(lines, status, text.encoding, text.text.endswith(("\n", "\r")))


def split_lines(content: str) -> list[str]:
    """Lines as editors count them: ended by LF, CRLF or CR, not by the rarer characters of Unicode."""
    if "\r" in content:
        content = content.replace("\r\n", "\n").replace("\r", "\n")
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


MAX_COLOURED = 64 << 10
"""Lexers are regular expressions that were not written for hostile files; they get only so much."""


class SyntaxToken(TypedDict):
    line: int
    column: int
    text: str
    type: str


def syntax_tokens(outliner: Outliner, path: str, lines: Sequence[str], first: int) -> list[SyntaxToken]:
    """The tokens of some lines, without white space. Empty where the language is not known."""
    text = "\n".join(lines)[:MAX_COLOURED]
    found = outliner.tokens(path.rpartition("/")[2], text, first)
    return [
        {"line": line, "column": column, "text": part, "type": kind} for line, column, part, kind in found
    ]


MAX_OUTLINE = 40
MAX_NAME = 200


class Metadata(TypedDict):
    total_lines: int
    lines_returned: int
    start_line: int
    end_line: int
    last_modified: str
    size: int
    encoding: str


class Defined(TypedDict):
    name: str
    kind: str
    start_line: int
    end_line: int


class ReadResult(TypedDict):
    path: str
    summary: str
    line_range: str
    content: str
    lines: NotRequired[list[str]]
    metadata: NotRequired[Metadata]
    syntax_tokens: NotRequired[list[SyntaxToken]]
    outline: NotRequired[list[Defined]]
    imports: NotRequired[list[str]]
    exports: NotRequired[list[str]]
    outline_note: NotRequired[str]
    truncated: bool
    next: NotRequired[str]
    left_out: NotRequired[list[str]]


def tools(mounts: Mounts, outliner: Outliner) -> list[Tool]:
    @tool("code.read", reads=["project"], effects_of=reads_of, summarize=summary, cache_s=300, fit=fit_read)
    def read_code(
        path: MountPath,
        start_line: FirstLine = 1,
        end_line: LastLine = None,
        max_lines: MaxLines = 500,
        syntax_highlight: Highlight = False,
        include_metadata: WithMetadata = True,
        include_lines: AsList = False,
        include_outline: WithOutline = True,
    ) -> ReadResult:
        """Read a text file or some of its lines, counted from 1. `truncated` says that there is more; `next`, how to get it."""
        if end_line is not None and end_line < start_line:
            raise InvalidArgs(
                f"end_line {end_line} is before start_line {start_line}", "give the smaller number first"
            )
        loaded = load(mounts, path)
        total = len(loaded.lines)
        if start_line > max(total, 1):
            raise InvalidArgs(
                f"{path.shown!r} has {total} lines, there is no line {start_line}", "begin earlier"
            )
        wanted = total if end_line is None else min(end_line, total)
        last = min(wanted, start_line + max_lines - 1)
        lines = loaded.lines[start_line - 1 : last]
        result: ReadResult = {
            "path": path.shown,
            "summary": f"{counted(len(lines), 'line', 'lines')} ({total:,} total)",
            "line_range": f"{start_line}-{last}",
            "content": "\n".join(lines) + "\n" * (loaded.ended and len(lines) == total),
            "truncated": last < wanted,
        }
        if last < wanted:
            result["next"] = f"go on with start_line={last + 1}"
        if include_lines:
            result["lines"] = lines
        if include_metadata:
            result["metadata"] = _metadata(loaded, start_line, last, len(lines))
        if syntax_highlight:
            result["syntax_tokens"] = syntax_tokens(outliner, path.relative, lines, start_line)
        if include_outline:
            _add_outline(result, outliner, path, loaded, (start_line, last))
        return result

    return [read_code]


def _metadata(loaded: Loaded, first: int, last: int, count: int) -> Metadata:
    return {
        "total_lines": len(loaded.lines),
        "lines_returned": count,
        "start_line": first,
        "end_line": last,
        "last_modified": datetime.fromtimestamp(loaded.status.st_mtime, UTC).isoformat(timespec="seconds"),
        "size": loaded.status.st_size,
        "encoding": loaded.encoding,
    }


def _add_outline(
    result: ReadResult, outliner: Outliner, path: MountPath, loaded: Loaded, lines: tuple[int, int]
) -> None:
    """What the lines that were read define or are part of, outermost first."""
    language = language_of(path.relative, loaded.lines[0] if loaded.lines else "")
    if language is None:
        return
    try:
        made = outliner.outline("\n".join(loaded.lines), language)
    except Unavailable:  # an outline is a help, not what was asked for
        return
    found: list[Defined] = []
    _collect(made.symbols, "", *lines, found)
    imports = [text for line, text in made.imports if lines[0] <= line <= lines[1]]
    exports = [text for line, text in made.exports if lines[0] <= line <= lines[1]]
    if found:
        result["outline"] = found[:MAX_OUTLINE]
    if imports:
        result["imports"] = imports[:MAX_OUTLINE]
    if exports:
        result["exports"] = exports[:MAX_OUTLINE]
    if made.note:
        result["outline_note"] = made.note
    elif max(len(found), len(imports), len(exports)) > MAX_OUTLINE:
        result["outline_note"] = f"the first {MAX_OUTLINE} of each; code.outline has all"


def _collect(symbols: list[Symbol], prefix: str, first: int, last: int, found: list[Defined]) -> None:
    for symbol in symbols:
        if len(found) > MAX_OUTLINE or symbol.end_line < first or symbol.start_line > last:
            continue
        name = prefix + symbol.name
        if len(name) > MAX_NAME:
            name = "…" + name[-MAX_NAME:]
        found.append(
            {"name": name, "kind": symbol.kind, "start_line": symbol.start_line, "end_line": symbol.end_line}
        )
        _collect(symbol.children, name + ".", first, last, found)


def summary(data: Any) -> str:
    return f"Read {data['summary']} from {data['path']}"
