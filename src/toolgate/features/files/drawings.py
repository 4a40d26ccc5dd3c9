"""Drawings of `fs.*`: what files say, with line numbers for a person; their names; what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolgate.kits.terminal.drawing import (
    DrawnLine,
    draw_patch,
    file_name,
    found,
    listed_file,
    numbered,
    paint,
)

_LISTS = ("findings", "deleted")


def draw_contents(data: Any, person: bool) -> Iterator[DrawnLine]:
    parts = data["range_slices"] if "content" not in data else [{"start": 1, "content": data["content"]}]
    for index, part in enumerate(parts):
        if index:
            yield paint("--", "dim")
        said = part["content"]
        drawn = list(numbered(_lines(said, person), part["start"], person))
        if drawn and not person and index == len(parts) - 1 and not said.endswith("\n"):
            drawn[-1].end = ""  # as the file has it
        yield from drawn


def _lines(text: str, person: bool) -> list[str]:
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    return [line.removesuffix("\r") for line in lines] if person else lines


def draw_entries(data: Any, person: bool) -> Iterator[DrawnLine]:
    details = data.get("details") or [{}] * len(data["entries"])
    for name, detail in zip(data["entries"], details, strict=True):
        if not detail:
            yield file_name(name, person)
        elif person:
            yield listed_file(name, detail["size"], detail["modified"] or "", person)
        else:
            yield _detailed(name, detail)


def draw_found(data: Any, person: bool) -> Iterator[DrawnLine]:
    for name in data["files"]:
        yield file_name(name, person)


def _detailed(name: str, detail: Any) -> DrawnLine:
    """For a program: parted by tabs, the name last, as it may hold anything."""
    size = "-" if detail["size"] is None else detail["size"]
    return paint("\t".join((detail["kind"], str(size), detail["modified"] or "-", name)))


def draw_changed(data: Any, person: bool) -> Iterator[DrawnLine]:
    """One change: its facts, then what is a list."""
    facts = [(name, value) for name, value in data.items() if name not in _LISTS and value is not None]
    facts += [("deleted", name) for name in sorted(data.get("deleted", ()))]
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        yield paint(f"{name:<{width}}  ", "bold").append(shown)
    yield from found(data)


CHANGES = ("fs.write", "fs.append", "fs.edit", "fs.save", "fs.ensure_dir", "fs.move", "fs.delete")
DRAWINGS = {
    "fs.read": draw_contents,
    "fs.list": draw_entries,
    "fs.find": draw_found,
    "fs.patch": draw_patch,
    **dict.fromkeys(CHANGES, draw_changed),
}
