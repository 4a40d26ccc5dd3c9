"""How results of certain tools are drawn in a terminal. Without a drawing of its own a result is shown as data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from rich.text import Text

from toolgate.faces.cli import speech

Drawing = Callable[[Any], Iterator[Text]]


def show(tool: str, data: Any) -> bool:
    """Draw it, if a person looks on and this tool has a drawing; pipes get data as always."""
    draw = DRAWINGS.get(tool)
    if draw is None or not sys.stdout.isatty():
        return False
    try:
        lines = list(draw(data))
    except (KeyError, TypeError, AttributeError):  # shortened to fit the budget: shown as it is
        return False
    console = speech.out()
    for line in lines:
        console.print(line, soft_wrap=True)
    return True


def draw_search(data: Any) -> Iterator[Text]:
    """Files as headings, lines with their numbers, what matches in colour."""
    for file, matches in groupby(data["matches"], key=lambda match: match["file"]):
        yield speech.safe(file, "magenta")
        last = 0
        for match in matches:
            number = match.get("line", 0)
            first = number - len(match["context_before"])
            if last and first > last + 1:
                yield Text("--", "dim")
            yield from _context(match["context_before"], first, last)
            yield _matching(match, number)
            last = max(last, number)
            following = _until_next(data["matches"], file, number)
            shown = (
                match["context_after"][: max(following - number - 1, 0)]
                if following
                else match["context_after"]
            )
            yield from _context(shown, number + 1, last)
            last = max(last, number + len(shown))
        yield Text("")
    more = ", more than shown" if data["truncated"] else ""
    yield Text(f"{data['total_matches']} matches, {data['files_searched']} files searched{more}", "dim")


def _until_next(matches: Any, file: str, number: int) -> int:
    """The next matching line of the file, or 0."""
    return min(
        (each["line"] for each in matches if each["file"] == file and each.get("line", 0) > number), default=0
    )


def _context(lines: list[str], first: int, last: int) -> Iterator[Text]:
    for number, line in enumerate(lines, first):
        if number > last:
            yield Text(f"{number}-", "green").append_text(speech.safe(line, "dim"))


def _matching(match: Any, number: int) -> Text:
    text, matched = match["line_text"], match["matched_text"]
    at = text.find(matched, 0 if text.startswith("…") else max(match.get("column", 1) - 1, 0))
    line = Text(f"{number}:", "green") if number else Text("")
    if at < 0 or not matched:
        return line.append_text(speech.safe(text))
    return (
        line.append_text(speech.safe(text[:at]))
        .append_text(speech.safe(matched, "bold red"))
        .append_text(speech.safe(text[at + len(matched) :]))
    )


def draw_read(data: Any) -> Iterator[Text]:
    first = data.get("metadata", {}).get("start_line", 1)
    lines = data["content"].split("\n") if data["content"] else []
    width = len(str(first + len(lines)))
    for number, line in enumerate(lines, first):
        yield Text(f"{number:>{width}} ", "green").append_text(speech.safe(line))
    if data["truncated"]:
        yield Text(f"… {data['metadata']['total_lines']} lines in all", "dim")


def draw_list(data: Any) -> Iterator[Text]:
    for entry in data["files"]:
        size = "" if entry["is_directory"] else f"{entry['size']:,}"
        name = (
            speech.safe(entry["path"] + "/", "blue") if entry["is_directory"] else speech.safe(entry["path"])
        )
        yield Text(f"{size:>12}  ", "green").append_text(name)
    if data["truncated"]:
        yield Text(f"… {data['total_files']} in all", "dim")


def draw_outline(data: Any) -> Iterator[Text]:
    yield speech.safe(data["path"], "magenta")
    yield from _symbols(data["symbols"], 0)


def _symbols(symbols: Any, depth: int) -> Iterator[Text]:
    for each in symbols:
        line = Text(f"{each['start_line']:>6}-{each['end_line']:<6} ", "green").append("  " * depth)
        yield line.append(each["kind"] + " ", "dim").append_text(speech.safe(each["name"], "bold"))
        yield from _symbols(each.get("children", ()), depth + 1)


DRAWINGS: dict[str, Drawing] = {
    "code.search": draw_search,
    "fs.search": draw_search,
    "code.read": draw_read,
    "code.list": draw_list,
    "code.outline": draw_outline,
}
