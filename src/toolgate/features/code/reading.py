"""`code.read` and `code.outline`: a source file or some of its lines, what it defines, and tokens for faces that colour it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.conceal import conceal_text
from toolgate.core.effects import FILE_WORDS, Effects
from toolgate.core.errors import InvalidArgs, TooLarge, Unavailable
from toolgate.core.fitting import RESERVE, head, leading, shorten, size
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.core.rendering import counted
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import LANGUAGES, Outliner, Symbol, language_of
from toolgate.workspace.reading import note_file, open_to_read, read_steady
from toolgate.workspace.text import decode

# What the tools of source files share: what a call of them reads, and how it is said that a result was cut.


def reads_of(args: Mapping[str, Any]) -> Effects:
    mounts = {path.partition(":")[0] for path in _paths(args)} or {"project"}
    return Effects.of(tuple(mount if mount in FILE_WORDS else "project" for mount in mounts))


def _paths(args: Mapping[str, Any]) -> Iterator[str]:
    for name in ("path", "directory"):
        if isinstance(args.get(name), str):
            yield args[name]
    yield from args.get("paths") or ()


def said(data: dict[str, Any], told: str) -> dict[str, Any]:
    return {**data, "truncated": True, "next": told}


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
FirstLine = Annotated[int, Field(ge=1, description="First line to read, counted from 1.")]
LastLine = Annotated[
    Annotated[int, Field(ge=1)] | None,
    Field(description="Last line to read, included; without it, the end of the file."),
]
MaxLines = Annotated[int, Field(ge=1, le=10_000, description="Lines to read at most.")]
Highlight = Annotated[bool, Field(description="Add `syntax_tokens`, to colour the lines by.")]
WithMetadata = Annotated[
    bool, Field(description="Add `metadata`: number of lines, size, encoding, time of change.")
]
AsList = Annotated[bool, Field(description="Add `lines`: the content as a list.")]
WithOutline = Annotated[
    bool,
    Field(description="Add `outline`, `imports` and `exports` of what was read, if the language is known."),
]
MaxSymbols = Annotated[int, Field(ge=1, le=5000, description="Definitions to give at most.")]


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


class OutlineResult(TypedDict):
    path: str
    language: str
    symbols: list[dict[str, Any]]
    total_symbols: int
    complete: bool
    truncated: bool
    note: NotRequired[str]
    next: NotRequired[str]


def tools(context: FeatureContext) -> list[Tool]:
    assert context.files is not None
    mounts, outliner = context.files.mounts, context.stack.enter_context(Outliner())
    return [_read(mounts, outliner), _outline(mounts, outliner)]


def _read(mounts: Mounts, outliner: Outliner) -> Tool:
    @tool("code.read", reads=["project"], effects_of=reads_of, summarize=_in_words, cache_s=300, fit=fit_read)
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
            "summary": f"{counted(len(lines), 'line')} ({total:,} total)",
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

    return read_code


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


def _in_words(data: Any) -> str:
    return f"Read {data['summary']} from {data['path']}"


_EXTRAS = ("syntax_tokens", "lines", "outline", "imports", "exports")


def fit_read(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Whole lines, as many as fit; of a line that does not fit by itself its start."""
    data, room = dict(data), room - RESERVE
    for name in _EXTRAS:  # none of them may take the place of what was asked for
        if name in data and size(data[name]) > room // 4:
            del data[name]
            data["left_out"] = [*data.get("left_out", ()), name]
    first, last = map(int, data["line_range"].split("-"))
    lines = data["content"].split("\n")[: max(last - first + 1, 1)]  # a whole file also has its last line end
    left = room - size({**data, "content": ""}) - 2
    kept = leading(lines, left)  # its quotes pay for the escaped line end
    if kept == len(lines):
        told = "shortened to fit the budget: " + ", ".join(data.get("left_out", ()))
        return said(data, f"{data['next']}; {told}" if data["truncated"] else told)
    last = first + kept - 1
    if kept:
        data["content"] = "\n".join(lines[:kept])
        told = f"go on with start_line={last + 1}"
    else:
        data["content"], kept, last = head(lines[0], left), 1, first
        more = len(lines[0]) - len(data["content"])
        told = f"line {first} has {more:,} more characters: code.search shows the part around a match"
        if len(lines) > 1 or data["truncated"]:
            told += f"; go on with start_line={first + 1}"
    for name in ("outline", "syntax_tokens"):
        key = "start_line" if name == "outline" else "line"
        if name in data:
            data[name] = [each for each in data[name] if each[key] <= last]
    if "lines" in data:
        data["lines"] = data["lines"][:kept]
    data["line_range"] = f"{first}-{last}"
    data["summary"] = f"{kept} lines{data['summary'][data['summary'].index(' (') :]}"
    if "metadata" in data:
        data["metadata"] = {**data["metadata"], "lines_returned": kept, "end_line": last}
    return said(data, told)


def _outline(mounts: Mounts, outliner: Outliner) -> Tool:
    @tool(
        "code.outline",
        reads=["project"],
        effects_of=reads_of,
        summarize=_outlined,
        cache_s=300,
        fit=fit_outline,
    )
    def outline_file(path: MountPath, limit: MaxSymbols = 500) -> OutlineResult:
        """List what a source file defines: name, kind, lines and nesting. Works on files that are cut or wrong."""
        loaded = load(mounts, path)
        language = language_of(path.relative, loaded.lines[0] if loaded.lines else "")
        if language is None:
            known = ", ".join(each.name for each in LANGUAGES)
            raise InvalidArgs(f"{path.shown!r} is in no language that can be outlined", f"these can: {known}")
        made = outliner.outline("\n".join(loaded.lines), language)
        total = made.count
        room = [limit]
        result: OutlineResult = {
            "path": path.shown,
            "language": language.name,
            "symbols": [_symbol(symbol, room) for symbol in made.symbols if room[0] > 0],
            "total_symbols": total,
            "complete": made.complete,
            "truncated": total > limit,
        }
        if made.note:
            result["note"] = made.note
        if total > limit:
            result["next"] = "raise `limit` (at most 5,000)"
        return result

    return outline_file


def _symbol(symbol: Symbol, room: list[int]) -> dict[str, Any]:
    room[0] -= 1
    entry: dict[str, Any] = {
        "name": symbol.name,
        "kind": symbol.kind,
        "start_line": symbol.start_line,
        "end_line": symbol.end_line,
    }
    children = [_symbol(child, room) for child in symbol.children if room[0] > 0]
    return entry | {"children": children} if children else entry


def _outlined(data: Any) -> str:
    return f"Outlined {data['total_symbols']} definitions of {data['path']}"


def fit_outline(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    shorten(data, "symbols", room - RESERVE, "children")
    return said(data, "not all fit the budget: code.read gives the outline of some lines")
