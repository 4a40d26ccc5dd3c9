"""The results of history within a budget that is smaller than they are: the summary stays, the end goes."""

from __future__ import annotations

from typing import Any

from toolgate.toolsets.code_git.shapes import blame_summary, counted
from toolgate.toolsets.fitting import RESERVE, shorten, size

_FEW = 10


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
    told = f"{counted(len(missing), 'file')} cut to fit the budget: give `paths`, such as {_first(missing)}"
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
        dropped = shorten(data, "commits", room)
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
    data = dict(data)
    first = data["lines"][0]["line_number"] if data["lines"] else 1
    shorten(data, "lines", room - RESERVE)
    last = data["lines"][-1]["line_number"] if data["lines"] else first - 1
    summary = blame_summary(data["summary"], len(data["lines"]))
    return {**data, "summary": summary, "truncated": True, "next": f"go on with start_line={last + 1}"}


def _few_files(commit: dict[str, Any]) -> dict[str, Any]:
    names = commit["files_changed"]
    if len(names) <= _FEW:
        return commit
    more = len(names) - _FEW + commit.get("more_files", 0)
    return {**commit, "files_changed": names[:_FEW], "more_files": more}


def _first(names: list[str]) -> list[str]:
    return [name for name in names[:3] if len(name) < 60]
