"""Files: what they say, with line numbers for a person; their names; what they define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolgate.kits.terminal.drawing import Line, content, paint


def draw_read(data: Any, person: bool) -> Iterator[Line]:
    first, last = map(int, data["line_range"].split("-"))
    yield from _numbered(data["content"].split("\n")[: last - first + 1], first, person)
    if person and data["truncated"]:
        yield paint(f"… {data['summary']}", "dim")


def draw_contents(data: Any, person: bool) -> Iterator[Line]:
    parts = data["range_slices"] if "content" not in data else [{"start": 1, "content": data["content"]}]
    for index, part in enumerate(parts):
        if index:
            yield paint("--", "dim")
        said = part["content"]
        drawn = list(_numbered(_lines(said, person), part["start"], person))
        if drawn and not person and index == len(parts) - 1 and not said.endswith("\n"):
            drawn[-1].end = ""  # as the file has it
        yield from drawn


def _lines(text: str, person: bool) -> list[str]:
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    return [line.removesuffix("\r") for line in lines] if person else lines


def _numbered(lines: list[str], first: int, person: bool) -> Iterator[Line]:
    width = len(str(first + len(lines) - 1))
    for number, line in enumerate(lines, first):
        start = paint(f"{number:>{width}}  ", "green") if person else Line()
        yield start.append_line(content(line))


def draw_list(data: Any, person: bool) -> Iterator[Line]:
    for entry in data["files"]:
        name = entry["path"] + ("/" if entry["is_directory"] else "")
        size = None if entry["is_directory"] else entry["size"]
        yield _entry(name, size, entry["last_modified"], person)
    if person and data["truncated"]:
        yield paint(f"… {data['total_files']:,} in all", "dim")


def draw_entries(data: Any, person: bool) -> Iterator[Line]:
    details = data.get("details") or [{}] * len(data["entries"])
    for name, detail in zip(data["entries"], details, strict=True):
        if not detail:
            yield _name(name, person)
        elif person:
            yield _entry(name, detail["size"], detail["modified"] or "", person)
        else:
            yield _detailed(name, detail)


def draw_found(data: Any, person: bool) -> Iterator[Line]:
    for name in data["files"]:
        yield _name(name, person)


def _entry(name: str, size: int | None, modified: str, person: bool) -> Line:
    if not person:
        return _name(name, person)
    shown = "" if size is None else f"{size:,}"
    return (
        paint(f"{shown:>12}  ", "green")
        .append_line(paint(modified[:16].replace("T", " "), "dim"))
        .append("  ")
        .append_line(_name(name, person))
    )


def _detailed(name: str, detail: Any) -> Line:
    """For a program: parted by tabs, the name last, as it may hold anything."""
    size = "-" if detail["size"] is None else detail["size"]
    return paint("\t".join((detail["kind"], str(size), detail["modified"] or "-", name)))


def _name(name: str, person: bool) -> Line:
    return paint(name, "bold blue" if person and name.endswith("/") else "")


def draw_outline(data: Any, person: bool) -> Iterator[Line]:
    if person:
        yield paint(data["path"], "magenta")
    yield from _symbols(data["symbols"], 0)
    if data.get("note"):
        yield paint(f"… {data['note']}", "yellow")


def _symbols(symbols: Any, depth: int) -> Iterator[Line]:
    for each in symbols:
        line = paint(f"{each['start_line']:>6}-{each['end_line']:<6} ", "green").append("  " * depth)
        yield line.append_line(paint(each["kind"] + " ", "dim")).append_line(paint(each["name"], "bold"))
        yield from _symbols(each.get("children", ()), depth + 1)
