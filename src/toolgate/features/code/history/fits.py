"""The results of history within a budget that is smaller than they are: the summary stays, the end goes."""

from __future__ import annotations

from typing import Any

from toolgate.core.fitting import RESERVE, head, shorten, size
from toolgate.features.code.history.shapes import blame_summary, counted

_FEW = 10
_TITLE = 200
"""Characters of a message, where not even one commit fits with all of it."""


def fit_diff(data: dict[str, Any], room: int) -> dict[str, Any]:
    """The list of files outlives their hunks."""
    data, room = dict(data), room - RESERVE
    names = [file["path"] for file in data["files"]]
    whole = len(data["diffs"])
    dropped = shorten(data, "diffs", room, "hunks")
    if size(data) > room:
        shorten(data, "files", room)
    cut = [diff["path"] for diff in data["diffs"][whole - dropped :]]
    missing = cut + [name for name in names if name not in {diff["path"] for diff in data["diffs"]}]
    count = data["total_changes"]["files_changed"] - len(data["diffs"]) + len(cut)
    told = f"{counted(count, 'file')} cut to fit the budget: give `paths`, such as {_first(missing)}"
    return {**data, "truncated": True, "next": told}


def fit_log(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Diffs go first, then long lists of files, then the oldest commits."""
    data, room = dict(data), room - RESERVE
    data["commits"] = [
        {name: value for name, value in commit.items() if name not in ("diff", "cut")}
        for commit in data["commits"]
    ]
    told = "diffs do not fit the budget: ask code.show for one commit"
    if size(data) > room:
        data["commits"] = [_few_files(commit) for commit in data["commits"]]
        told = "lists of files were cut to fit the budget: ask code.show for one commit"
    if size(data) > room:
        first = data["commits"][0]
        dropped = shorten(data, "commits", room)
        if not data["commits"]:  # going on must lead to the next one
            data["commits"], dropped = [_titled(first)], dropped - 1
        data["total_commits"] = len(data["commits"])
        skip = data["skip"] + len(data["commits"])
        told = f"{counted(dropped, 'older commit')} cut to fit the budget: go on with skip={skip}"
    return {**data, "truncated": True, "next": told}


def fit_show(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    commit = dict(data["commit"])
    left = room - size({**data, "commit": {}})
    if "diff" in commit:
        shorten(commit, "diff", left, "hunks")
    if size(commit) > left:
        commit = _few_files(commit)
    told = "the diff was cut to fit the budget: ask code.diff with `paths`, base the first parent, compare this commit"
    return {**data, "commit": commit, "truncated": True, "next": told}


def fit_blame(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    lines = data["lines"]
    shorten(data, "lines", room)
    if not data["lines"] and lines:  # going on must lead to the next one
        data["lines"] = [_begun(lines[0], room - size({**data, "lines": []}))]
    last = data["lines"][-1]["line_number"] if data["lines"] else 0
    summary = blame_summary(data["summary"], len(data["lines"]))
    told = f"go on with start_line={last + 1}"
    if last >= data["total_lines"]:
        told = "the line is too long: code.search shows the part around a match"
    return {**data, "summary": summary, "truncated": True, "next": told}


def _few_files(commit: dict[str, Any]) -> dict[str, Any]:
    names = commit["files_changed"]
    if len(names) <= _FEW:
        return commit
    more = len(names) - _FEW + commit.get("more_files", 0)
    return {**commit, "files_changed": names[:_FEW], "more_files": more}


def _titled(commit: dict[str, Any]) -> dict[str, Any]:
    message = commit["message"]
    more = len(message) - _TITLE
    return {**commit, "message": f"{message[:_TITLE]}… [{more:,} more characters]"} if more > 0 else commit


def _begun(line: dict[str, Any], room: int) -> dict[str, Any]:
    """As much of a line as there is room for."""
    if "content" not in line:
        return line
    return {**line, "content": head(line["content"], room - size({**line, "content": ""}))}


def _first(names: list[str]) -> list[str]:
    return [name for name in names[:3] if len(name) < 60]
