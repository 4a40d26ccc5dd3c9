"""Changes: which files, and what became of them. A diff is told as `git apply --numstat` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolgate.faces.words import finding_in_words
from toolgate.kits.terminal.drawing import Line, paint

_STYLES = {"create": "green", "delete": "red"}
_LISTS = ("findings", "deleted")


def draw_patch(data: Any, person: bool) -> Iterator[Line]:
    """What was done, lines added and removed, and the name. In a pipe parted by tabs."""
    counts = [_counts(file, person) for file in data["files"]]
    width = max((len(f"{plus} {minus}") for plus, minus in counts), default=0)
    for file, (plus, minus) in zip(data["files"], counts, strict=True):
        name = _name(file["path"])
        if file.get("origin"):
            name = f"{_name(file['origin'])} => {name}"
        if person:
            yield (
                paint(f"{file['op']:<6}", _STYLES.get(file["op"], ""))
                .append(f"  {f'{plus} {minus}':>{width}}", "dim")
                .append(f"  {name}")
            )
        else:
            yield paint("\t".join((file["op"], plus, minus, name)))
    yield from found(data)
    if person:
        yield paint(_summary(data), "dim")


def draw_changed(data: Any, person: bool) -> Iterator[Line]:
    """One change: its facts, then what is a list."""
    facts = [(name, value) for name, value in data.items() if name not in _LISTS and value is not None]
    facts += [("deleted", name) for name in sorted(data.get("deleted", ()))]
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        yield paint(f"{name:<{width}}  ", "bold").append(shown)
    yield from found(data)


def _counts(file: Any, person: bool) -> tuple[str, str]:
    """`-` where nobody counted, as git says of binary files."""
    plus, minus = file.get("insertions"), file.get("deletions")
    if plus is None or minus is None:
        return "-", "-"
    return (f"+{plus:,}", f"-{minus:,}") if person else (str(plus), str(minus))


def _name(path: str) -> str:
    return path.removeprefix("project:")


def found(data: Any) -> Iterator[Line]:
    for one in data.get("findings") or ():
        yield paint(f"found: {finding_in_words(one)}", "yellow")


def _summary(data: Any) -> str:
    files = data["files"]
    told = f"{len(files):,} file{'s' * (len(files) != 1)}"
    if "hunks" not in data:
        return told
    plus, minus = (sum(file[side] for file in files) for side in ("insertions", "deletions"))
    moved = f", {data['moved']:,} found elsewhere than its header says" if data["moved"] else ""
    return f"{told}: +{plus:,}/-{minus:,}, {data['hunks']:,} hunk{'s' * (data['hunks'] != 1)}{moved}"
