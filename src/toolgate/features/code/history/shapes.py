"""Results that fit a model's budget: a summary first, then as much as there is room for, then how to get the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

from toolgate.core.fitting import RESERVE, head, shorten, size
from toolgate.core.rendering import counted
from toolgate.workspace.git.commits import Commit
from toolgate.workspace.git.patch import Changed, GitFileDiff, GitHunk, GitLine, shown
from toolgate.workspace.git.worktree import Blame, BlameLine, Origin

MAX_DIFF = 50 * 1024
MOST_AUTHORS = 10
JSON_ROOM = 80_000
"""Characters of JSON, within the gate's default budget with room for what surrounds it."""
_PER_LINE = 56
"""What a line of a diff costs beside its content: keys, number, punctuation."""
MAX_FILES = 200
"""Names of one commit in a list of many."""
MAX_MESSAGE = 4000
MAX_TITLE = 500
View = Literal["unified", "split", "stat"]


@dataclass(slots=True)
class DiffBudget:
    """What is left for hunks: bytes of diff, and characters of the JSON they become."""

    diff: int
    json: int = JSON_ROOM
    full: bool = False

    def take(self, hunk: GitHunk) -> bool:
        cost = hunk.size + _PER_LINE * (hunk.count + 2)
        if hunk.size > self.diff or cost > self.json:
            self.full = True
            return False
        self.diff -= hunk.size
        self.json -= cost
        return True

    def part(self, hunk: GitHunk) -> list[GitLine]:
        """The first lines of a hunk that is too large for any answer, as many as there is room for."""
        if hunk.size <= MAX_DIFF and hunk.size + _PER_LINE * (hunk.count + 2) <= JSON_ROOM:
            return []  # it can be had whole, by asking for its file alone
        kept: list[GitLine] = []
        for line in hunk.lines:
            size = len(line.content.encode("utf-8", "replace")) + 2
            if size > self.diff or size + _PER_LINE > self.json:
                break
            self.diff -= size
            self.json -= size + _PER_LINE
            kept.append(line)
        return kept


def diff_shape(changed: Changed, room: DiffBudget, view: View) -> dict[str, Any]:
    files = changed.files
    added, removed = sum(file.insertions for file in files), sum(file.deletions for file in files)
    listed = files[: MAX_FILES * 5]
    diffs = [file_shape(file, room, view) for file in listed] if view != "stat" else []
    truncated = room.full or not changed.whole or len(listed) < len(files)
    result: dict[str, Any] = {
        "summary": f"{counted(len(files), 'file')}: +{added}/-{removed}",
        "files": [_brief(file) for file in listed],
        "diffs": [diff for diff in diffs if diff is not None],
        "total_changes": {"files_changed": len(files), "insertions": added, "deletions": removed},
        "truncated": truncated,
    }
    if changed.left_out:
        result["left_out"] = left_out(changed.left_out)
    if truncated:
        missing = [
            shown(file.path)
            for file, diff in zip(listed, diffs, strict=False)
            if diff is None or "cut" in diff
        ] + [shown(file.path) for file in files[len(listed) :]]
        result["next"] = f"{counted(len(missing), 'file')} cut: give `paths`, such as {missing[:3]}"
    return result


def file_shape(file: GitFileDiff, room: DiffBudget, view: View = "unified") -> dict[str, Any] | None:
    """A file with the hunks that fit; None where not even the first one does."""
    hunks: list[dict[str, Any]] = []
    whole = 0
    for hunk in file.hunks:
        if room.full:
            break
        if room.take(hunk):
            hunks.append(_hunk(hunk, view))
            whole += 1
        elif part := room.part(hunk):
            more = f"{counted(hunk.count - len(part), 'line')} more: code.read shows the file"
            hunks.append({**_hunk(replace(hunk, lines=part), view), "cut": more})
    room.full |= bool(file.unread)
    if file.hunk_count and not hunks:
        return None
    shape: dict[str, Any] = {
        "path": shown(file.path),
        "status": file.status,
        "hunks": hunks,
        "stats": {"insertions": file.insertions, "deletions": file.deletions},
        **_marks(file),
    }
    if whole < file.hunk_count:
        shape["cut"] = f"{counted(file.hunk_count - whole, 'hunk')} more"
    return shape


def commit_shape(
    commit: Commit, changed: Changed, room: DiffBudget, include_diff: bool, *, whole: bool = False
) -> dict[str, Any]:
    names = [shown(file.path) for file in changed.files]
    most = MAX_FILES * 5 if whole else MAX_FILES
    shape: dict[str, Any] = {
        "hash": commit.hash,
        "short_hash": commit.short,
        "author": commit.author.name,
        "email": commit.author.email,
        "date": commit.author.date,
        "message": _message(commit.message),
        "files_changed": names[:most],
        "stats": {
            "insertions": sum(file.insertions for file in changed.files),
            "deletions": sum(file.deletions for file in changed.files),
        },
    }
    if len(names) > most:
        shape["more_files"] = len(names) - most
    if whole or len(commit.parents) > 1:
        shape["parents"] = list(commit.parents)
    if whole:
        shape["committer"] = {
            "name": commit.committer.name,
            "email": commit.committer.email,
            "date": commit.committer.date,
        }
    if changed.left_out:
        shape["left_out"] = left_out(changed.left_out)
    if include_diff:
        diffs = [file_shape(file, room) for file in changed.files[:most]]
        shape["diff"] = [diff for diff in diffs if diff is not None]
        cut = sum(diff is None or "cut" in diff for diff in diffs) + max(len(names) - most, 0)
        if cut:
            shape["cut"] = f"{counted(cut, 'file')} without their whole diff: ask code.diff with `paths`"
    return shape


def blamed(blame: Blame, include_content: bool) -> dict[str, Any]:
    commits = {line.origin.hash: _origin(line.origin) for line in blame.lines}
    codec = _codec(blame.lines)
    shapes: list[dict[str, Any]] = []
    room = JSON_ROOM
    for line in blame.lines:
        shape: dict[str, Any] = {"line_number": line.number, "commit": commits[line.origin.hash]}
        if include_content:
            shape["content"] = line.content.decode(codec)
        room -= len(line.content) * include_content + 190 + len(line.origin.summary) + len(line.origin.author)
        if room < 0 and shapes:
            break
        shapes.append(shape)
    counts: Counter[str] = Counter()
    for origin in blame.origins:
        counts[origin.author] += origin.lines
    summary = f"{counted(blame.asked, 'line')} of {blame.total:,} from {counted(len(blame.origins), 'commit')} by {counted(len(counts), 'author')}"
    result: dict[str, Any] = {
        "summary": summary if len(shapes) == blame.asked else blame_summary(summary, len(shapes)),
        "authors": dict(counts.most_common(MOST_AUTHORS)),
        "lines": shapes,
        "total_lines": blame.total,
        "truncated": len(shapes) < blame.asked,
    }
    if len(counts) > MOST_AUTHORS:
        result["more_authors"] = len(counts) - MOST_AUTHORS
    if codec != "utf-8":
        result["encoding"] = codec
    if len(shapes) < blame.asked:
        result["next"] = f"go on with start_line={shapes[-1]['line_number'] + 1}"
    return result


def blame_summary(whole: str, shown: int) -> str:
    """What was asked for, and how much of it there is to see."""
    return f"{whole.partition('; ')[0]}; the first {shown:,} are shown"


def left_out(count: int) -> str:
    return f"{counted(count, 'file')} that may not be shown"


def _brief(file: GitFileDiff) -> dict[str, Any]:
    return {
        "path": shown(file.path),
        "status": file.status,
        "changes": "binary" if file.binary else f"+{file.insertions}/-{file.deletions}",
        "hunks": file.hunk_count,
    }


def _marks(file: GitFileDiff) -> dict[str, Any]:
    marks: dict[str, Any] = {}
    if file.old_path is not None:
        marks["old_path"] = shown(file.old_path)
    if file.binary:
        marks["binary"] = True
    if file.submodule:
        marks["submodule"] = True
    if "0" * 6 not in file.modes and file.modes[0] != file.modes[1]:
        marks["mode"] = f"{file.modes[0]} → {file.modes[1]}"
    there = next((mode for mode in file.modes if mode.strip("0")), "")
    if "0" * 6 in file.modes and there != "100644":
        marks["file_mode"] = there
    if file.encoding != "utf-8":
        marks["encoding"] = file.encoding
    return marks


def _hunk(hunk: GitHunk, view: View) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "old_start": hunk.old_start, "old_lines": hunk.old_lines,
        "new_start": hunk.new_start, "new_lines": hunk.new_lines,
    }  # fmt: skip
    if hunk.section:
        shape["section"] = hunk.section
    if view == "unified":
        shape["lines"] = [_line(line) for line in hunk.lines]
    else:
        shape["rows"] = _rows(hunk)
    return shape


def _line(line: GitLine) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": line.type, "line_number": line.line_number, "content": line.content}
    if line.no_newline:
        shape["no_newline"] = True
    return shape


def _rows(hunk: GitHunk) -> list[dict[str, Any]]:
    """Old on the left, new on the right; what was replaced stands beside what replaced it."""
    rows: list[dict[str, Any]] = []
    left: list[GitLine] = []
    right: list[GitLine] = []

    def flush() -> None:
        for old, new in zip_longest(left, right):
            rows.append(
                {"left": None if old is None else _line(old), "right": None if new is None else _line(new)}
            )
        left.clear()
        right.clear()

    shift = hunk.old_start - hunk.new_start
    for line in hunk.lines:
        if line.type == "deletion":
            left.append(line)
            shift += 1
        elif line.type == "addition":
            right.append(line)
            shift -= 1
        else:
            flush()
            shape = _line(line)
            rows.append({"left": shape | {"line_number": line.line_number + shift}, "right": shape})
    flush()
    return rows


def _origin(origin: Origin) -> dict[str, Any]:
    return {
        "hash": origin.hash,
        "short_hash": origin.hash[:10],
        "author": origin.author,
        "date": origin.date,
        "message": origin.summary if origin.committed else "not committed yet",
        **({"boundary": True} if origin.boundary else {}),
    }


def _codec(lines: list[BlameLine]) -> str:
    try:
        for line in lines:
            line.content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _message(text: str, most: int = MAX_MESSAGE) -> str:
    return text if len(text) <= most else f"{text[:most]}… [{len(text) - most:,} more characters]"


# The results of history within a budget that is smaller than they are: the summary stays, the end goes.

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
            data["commits"] = [{**first, "message": _message(first["message"], _TITLE)}]
            dropped -= 1
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


def _begun(line: dict[str, Any], room: int) -> dict[str, Any]:
    """As much of a line as there is room for."""
    if "content" not in line:
        return line
    return {**line, "content": head(line["content"], room - size({**line, "content": ""}))}


def _first(names: list[str]) -> list[str]:
    return [name for name in names[:3] if len(name) < 60]
