"""Files: what they say, with line numbers for a person; their names; what they define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from toolgate.faces.cli.drawings import paint


def draw_read(data: Any, person: bool) -> Iterator[Text]:
    first = int(data["line_range"].partition("-")[0])
    yield from _numbered(data["content"].split("\n") if data["content"] else [], first, person)
    if person and data["truncated"]:
        yield paint(f"… {data['summary']}", "dim")


def draw_contents(data: Any, person: bool) -> Iterator[Text]:
    if "content" in data:
        yield from _numbered(_lines(data["content"]), 1, person)
        return
    for index, part in enumerate(data["range_slices"]):
        if index:
            yield Text("--", "dim")
        yield from _numbered(_lines(part["content"]), part["start"], person)


def _lines(content: str) -> list[str]:
    lines = content.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _numbered(lines: list[str], first: int, person: bool) -> Iterator[Text]:
    width = len(str(first + len(lines) - 1))
    for number, line in enumerate(lines, first):
        start = paint(f"{number:>{width}}  ", "green") if person else Text()
        yield start.append_text(paint(line))


def draw_list(data: Any, person: bool) -> Iterator[Text]:
    for entry in data["files"]:
        name = entry["path"] + ("/" if entry["is_directory"] else "")
        size = None if entry["is_directory"] else entry["size"]
        yield _entry(name, size, entry["last_modified"], person)
    if person and data["truncated"]:
        yield Text(f"… {data['total_files']:,} in all", "dim")


def draw_entries(data: Any, person: bool) -> Iterator[Text]:
    details = data.get("details") or [{}] * len(data["entries"])
    for name, detail in zip(data["entries"], details, strict=True):
        if detail:
            yield _entry(name, detail["size"], detail["modified"] or "", person)
        else:
            yield _name(name, person)


def draw_found(data: Any, person: bool) -> Iterator[Text]:
    for name in data["files"]:
        yield _name(name, person)


def _entry(name: str, size: int | None, modified: str, person: bool) -> Text:
    if not person:
        return _name(name, person)
    shown = "" if size is None else f"{size:,}"
    return (
        paint(f"{shown:>12}  ", "green")
        .append_text(paint(modified[:16].replace("T", " "), "dim"))
        .append("  ")
        .append_text(_name(name, person))
    )


def _name(name: str, person: bool) -> Text:
    return paint(name, "bold blue" if person and name.endswith("/") else "")


def draw_outline(data: Any, person: bool) -> Iterator[Text]:
    if person:
        yield paint(data["path"], "magenta")
    yield from _symbols(data["symbols"], 0)
    if data.get("note"):
        yield paint(f"… {data['note']}", "yellow")


def _symbols(symbols: Any, depth: int) -> Iterator[Text]:
    for each in symbols:
        line = paint(f"{each['start_line']:>6}-{each['end_line']:<6} ", "green").append("  " * depth)
        yield line.append_text(paint(each["kind"] + " ", "dim")).append_text(paint(each["name"], "bold"))
        yield from _symbols(each.get("children", ()), depth + 1)
