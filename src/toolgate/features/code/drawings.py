"""Drawings of `code.*`: matches as grep has them, files and outlines, history as git prints it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from toolgate.core.display import legible
from toolgate.kits.terminal import speech
from toolgate.kits.terminal.drawing import DrawnLine, content, listed_file, numbered, paint

_MARKS = {"context": (" ", ""), "addition": ("+", "green"), "deletion": ("-", "red")}
_HALF, _NUMBER, _MIDDLE = 60, 7, 3
"""Columns of a row: of the text in one half where there is no terminal, of its number and mark, and between the halves."""


def draw_search(data: Any, person: bool) -> Iterator[DrawnLine]:
    parted = False
    for one in () if data["matches"] else data["top_files"]:  # as `rg -c` does
        yield paint(f"{one['file']}:{one['count']}")
    for file, found in groupby(data["matches"], key=lambda match: match["file"]):
        matches = list(found)
        if person:
            yield paint(file, "magenta")
        elif parted and _has_context(matches):
            yield paint("--")
        parted = True
        yield from _matches(file, matches, person)
        if person:
            yield DrawnLine()
    if person:
        searched = f", {data['files_searched']:,} searched" if "files_searched" in data else ""
        yield paint(data["summary"] + searched, "dim")


def _matches(file: str, matches: list[Any], person: bool) -> Iterator[DrawnLine]:
    """Each line once, though it may be the context of two matches."""
    last = 0
    matching = {match.get("line", 0) for match in matches}
    apart = _has_context(matches)
    for match in matches:
        number = match.get("line", 0)
        before, after = match["context_before"], match["context_after"]
        if apart and last and number - len(before) > last + 1:
            yield paint("--", "dim")
        for at, line in enumerate(before, number - len(before)):
            if not number or (at > last and at not in matching):
                yield _start(file, at, "-", person).append_line(content(line, "dim"))
        yield _start(file, number, ":", person).append_line(_matching(match))
        last = max(last, number)
        for at, line in enumerate(after, number + 1):
            if at in matching:
                break
            if not number or at > last:
                yield _start(file, at, "-", person).append_line(content(line, "dim"))
                last = max(last, at) if number else 0


def _has_context(matches: list[Any]) -> bool:
    return any(match["context_before"] or match["context_after"] for match in matches)


def _start(file: str, number: int, mark: str, person: bool) -> DrawnLine:
    start = DrawnLine() if person else paint(file).append(mark)
    return start.append(f"{number}{mark}", "green") if number > 0 else start


def _matching(match: Any) -> DrawnLine:
    text, matched = match["line_text"], match["matched_text"]
    at = text.find(matched, 0 if text.startswith("…") else max(match.get("column", 1) - 1, 0))
    if at < 0 or not matched:
        return content(text)
    line = content(text[:at]).append_line(content(matched, "bold red"))
    return line.append_line(content(text[at + len(matched) :]))


def draw_read(data: Any, person: bool) -> Iterator[DrawnLine]:
    first, last = map(int, data["line_range"].split("-"))
    yield from numbered(data["content"].split("\n")[: last - first + 1], first, person)
    if person and data["truncated"]:
        yield paint(f"… {data['summary']}", "dim")


def draw_list(data: Any, person: bool) -> Iterator[DrawnLine]:
    for entry in data["files"]:
        name = entry["path"] + ("/" if entry["is_directory"] else "")
        size = None if entry["is_directory"] else entry["size"]
        yield listed_file(name, size, entry["last_modified"], person)
    if person and data["truncated"]:
        yield paint(f"… {data['total_files']:,} in all", "dim")


def draw_outline(data: Any, person: bool) -> Iterator[DrawnLine]:
    if person:
        yield paint(data["path"], "magenta")
    yield from _symbols(data["symbols"], 0)
    if data.get("note"):
        yield paint(f"… {data['note']}", "yellow")


def _symbols(symbols: Any, depth: int) -> Iterator[DrawnLine]:
    for each in symbols:
        line = paint(f"{each['start_line']:>6}-{each['end_line']:<6} ", "green").append("  " * depth)
        yield line.append_line(paint(each["kind"] + " ", "dim")).append_line(paint(each["name"], "bold"))
        yield from _symbols(each.get("children", ()), depth + 1)


def draw_diff(data: Any, person: bool) -> Iterator[DrawnLine]:
    for diff in data["diffs"]:
        yield from _file(diff, _half(person))
    if not data["diffs"]:
        for file in data["files"]:
            yield paint(f"{file['path']} {file['changes']}")
    if person:
        if data["diffs"]:
            yield DrawnLine()
        yield paint(data["summary"], "dim")


def draw_log(data: Any, person: bool) -> Iterator[DrawnLine]:
    for index, commit in enumerate(data["commits"]):
        if index:
            yield DrawnLine()
        yield from _commit(commit)
    if person:
        if data["commits"]:
            yield DrawnLine()
        yield paint(data["summary"], "dim")


def draw_show(data: Any, person: bool) -> Iterator[DrawnLine]:
    yield from _commit(data["commit"])


def _commit(commit: Any) -> Iterator[DrawnLine]:
    yield paint(f"commit {commit['hash']}", "yellow")
    if len(commit.get("parents", ())) > 1:
        yield paint("Merge:  " + " ".join(parent[:10] for parent in commit["parents"]))
    yield paint(f"Author: {commit['author']} <{commit['email']}>")
    yield paint(f"Date:   {commit['date']}")
    yield DrawnLine()
    for line in commit["message"].rstrip("\n").split("\n"):
        yield content("    " + line if line else "")
    yield DrawnLine()
    for name in commit["files_changed"]:
        yield paint(f" {name}", "dim")
    stats, more = commit["stats"], commit.get("more_files", 0)
    count = len(commit["files_changed"]) + more
    listed = f" (and {more:,} more files)" if more else ""
    yield paint(f" {count:,} changed, +{stats['insertions']:,}/-{stats['deletions']:,}{listed}", "dim")
    for diff in commit.get("diff", ()):
        yield DrawnLine()
        yield from _file(diff)
    if "cut" in commit:
        yield paint(f"… {commit['cut']}", "yellow")


def _half(person: bool) -> int:
    """How wide a half of a row is: two of them fill the terminal, so that none is folded."""
    if not person:
        return _HALF + _NUMBER
    return max((speech.out().width - _MIDDLE) // 2, _NUMBER + 1)


def _file(diff: Any, half: int = _HALF + _NUMBER) -> Iterator[DrawnLine]:
    from toolgate.features.code.rendering import file_head  # most drawings are of no diff

    for line in file_head(diff, diff["path"], diff.get("old_path") or diff["path"]):
        yield paint(line, "" if line.startswith("Binary") else "bold")
    for hunk in diff["hunks"]:
        yield from _hunk(hunk, half)
    if "cut" in diff:
        yield paint(f"… {diff['cut']}", "yellow")


def _hunk(hunk: Any, half: int) -> Iterator[DrawnLine]:
    from toolgate.features.code.rendering import hunk_head

    section = f" {hunk['section']}" if hunk.get("section") else ""
    yield paint(hunk_head(hunk), "cyan").append_line(content(section))
    for line in hunk.get("lines", ()):
        mark, style = _MARKS[line["type"]]
        yield content(mark + line["content"], style)
        if line.get("no_newline"):
            yield paint("\\ No newline at end of file", "dim")
    for row in hunk.get("rows", ()):
        yield _side(row["left"], half).append(" │ ", "dim").append_line(_side(row["right"], half))
    if "cut" in hunk:
        yield paint(f"… {hunk['cut']}", "yellow")


def _side(line: Any, half: int) -> DrawnLine:
    """One half of a row, always as wide."""
    if line is None:
        return paint(" " * half)
    mark, style = _MARKS[line["type"]]
    from rich.text import Text

    text = Text(legible(f"{line['line_number']:>5} {mark}{line['content']}"), tab_size=8)
    text.expand_tabs(8)
    text.truncate(half, overflow="ellipsis", pad=True)
    return paint(text.plain, style)


def draw_blame(data: Any, person: bool) -> Iterator[DrawnLine]:
    lines = data["lines"]
    authors = max((len(line["commit"]["author"]) for line in lines), default=0)
    width = len(str(lines[-1]["line_number"])) if lines else 0
    for line in lines:
        commit = line["commit"]
        who = paint(commit["author"][:24].ljust(min(authors, 24)))
        yield (
            paint(commit["short_hash"], "yellow")
            .append(" (")
            .append_line(who)
            .append_line(paint(f" {commit['date'][:10]}", "dim"))
            .append(f" {line['line_number']:>{width}}", "green")
            .append(") ")
            .append_line(content(line.get("content", "")))
        )
    if person:
        yield paint(data["summary"], "dim")


DRAWINGS = {
    "code.search": draw_search,
    "fs.search": draw_search,
    "code.read": draw_read,
    "code.list": draw_list,
    "code.outline": draw_outline,
    "code.diff": draw_diff,
    "code.log": draw_log,
    "code.show": draw_show,
    "code.blame": draw_blame,
}
