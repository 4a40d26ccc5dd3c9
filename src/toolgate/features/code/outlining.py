"""`code.outline`: what a source file defines."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.features.code.arguments import MaxSymbols, reads_of
from toolgate.features.code.fits import fit_outline
from toolgate.features.code.reading import load
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import LANGUAGES, Outliner, Symbol, language_of


class OutlineResult(TypedDict):
    path: str
    language: str
    symbols: list[dict[str, Any]]
    total_symbols: int
    complete: bool
    truncated: bool
    note: NotRequired[str]
    next: NotRequired[str]


def tools(mounts: Mounts, outliner: Outliner) -> list[Tool]:
    @tool(
        "code.outline",
        reads=["project"],
        effects_of=reads_of,
        summarize=summary,
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
            "symbols": [_entry(symbol, room) for symbol in made.symbols if room[0] > 0],
            "total_symbols": total,
            "complete": made.complete,
            "truncated": total > limit,
        }
        if made.note:
            result["note"] = made.note
        if total > limit:
            result["next"] = "raise `limit` (at most 5,000)"
        return result

    return [outline_file]


def _entry(symbol: Symbol, room: list[int]) -> dict[str, Any]:
    room[0] -= 1
    entry: dict[str, Any] = {
        "name": symbol.name,
        "kind": symbol.kind,
        "start_line": symbol.start_line,
        "end_line": symbol.end_line,
    }
    children = [_entry(child, room) for child in symbol.children if room[0] > 0]
    return entry | {"children": children} if children else entry


def summary(data: Any) -> str:
    return f"Outlined {data['total_symbols']} definitions of {data['path']}"
