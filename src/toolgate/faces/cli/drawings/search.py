"""Matches: at a terminal under their file, in a pipe with file and number on every line, as grep has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from toolgate.kits.terminal.drawing import Line, content, paint


def draw_search(data: Any, person: bool) -> Iterator[Line]:
    parted = False
    for file, found in groupby(data["matches"], key=lambda match: match["file"]):
        matches = list(found)
        if person:
            yield paint(file, "magenta")
        elif parted and _has_context(matches):
            yield paint("--")
        parted = True
        yield from _file(file, matches, person)
        if person:
            yield Line()
    if person:
        searched = f", {data['files_searched']:,} searched" if "files_searched" in data else ""
        yield paint(data["summary"] + searched, "dim")


def _file(file: str, matches: list[Any], person: bool) -> Iterator[Line]:
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


def _start(file: str, number: int, mark: str, person: bool) -> Line:
    start = Line() if person else paint(file).append(mark)
    return start.append(f"{number}{mark}", "green") if number > 0 else start


def _matching(match: Any) -> Line:
    text, matched = match["line_text"], match["matched_text"]
    at = text.find(matched, 0 if text.startswith("…") else max(match.get("column", 1) - 1, 0))
    if at < 0 or not matched:
        return content(text)
    line = content(text[:at]).append_line(content(matched, "bold red"))
    return line.append_line(content(text[at + len(matched) :]))
