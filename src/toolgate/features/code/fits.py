"""The results of `code.*` within their budget: how matches are told, what is left out, and how to get it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.core.fitting import RESERVE, head, leading, shorten, size


def group(matches: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The matching lines that are shown, by file; without line numbers their places among the matches, from 1."""
    found: dict[str, list[int]] = {}
    for place, match in enumerate(matches, 1):
        found.setdefault(match["file"], []).append(match.get("line", place))
    return found


def search_summary(data: Mapping[str, Any], files_only: bool = False) -> str:
    total, files, shown = data["total_matches"], data["files_matched"], len(data["matches"])
    least = "at least " if data["truncated"] and shown == total else ""
    some = f", the first {shown:,} shown" if shown < total else ""
    if files_only:
        shown = len(data["top_files"])
        least = "at least " if data["truncated"] and shown == files else ""
        some = f", {shown:,} with the most shown" if shown < files else ""
    return f"Found {least}{counted(total, 'match', 'matches')} in {counted(files, 'file', 'files')}{some}"


def counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


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
        return _said(data, f"{data['next']}; {told}" if data["truncated"] else told)
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
    return _said(data, told)


def fit_search(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Context goes first, then matches from the end; of files alone those with the fewest."""
    data, room = dict(data), room - RESERVE
    if not data["matches"]:
        dropped = shorten(data, "top_files", room)
        return _said(data, f"{dropped:,} more files do not fit the budget: give `paths` or a `file_pattern`")
    matches = [{**match, "context_before": [], "context_after": []} for match in data["matches"]]
    left = room - size({**data, "matches": [], "matches_by_file": {}})
    kept, seen = 0, ""
    for match in matches:
        left -= size(match) + 12 + (size(match["file"]) + 4 if match["file"] != seen else 0)
        if left < 0:
            break
        kept, seen = kept + 1, match["file"]
    told = "context lines were left out to fit the budget: ask for fewer matches"
    if kept < len(matches):
        told = (
            f"{len(matches) - kept:,} of the matches do not fit the budget: give `paths` or a `file_pattern`"
        )
        data["truncated"] = True
    data["matches"] = matches[:kept]
    data["matches_by_file"] = group(data["matches"])
    data["summary"] = search_summary(data)
    return _said(data, told)


def fit_list(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    dropped = shorten(data, "files", room - RESERVE)
    return _said(data, f"{dropped:,} do not fit the budget: give `directory` or a narrower `pattern`")


def fit_outline(data: dict[str, Any], room: int) -> dict[str, Any]:
    data = dict(data)
    shorten(data, "symbols", room - RESERVE, "children")
    return _said(data, "not all fit the budget: code.read gives the outline of some lines")


def _said(data: dict[str, Any], told: str) -> dict[str, Any]:
    return {**data, "truncated": True, "next": told}
