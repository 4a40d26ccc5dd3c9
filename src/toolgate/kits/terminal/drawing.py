"""Drawing of results, for a terminal and for a pipe: lines, and what several tools' drawings share.

A diff is told as `git apply --numstat` tells it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from toolgate.core.display import harmless, legible
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import dataclass, field
from toolgate.kits.words import finding_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text


class StyledPiece(NamedTuple):
    text: str
    style: str
    is_content: bool


@dataclass(slots=True)
class DrawnLine:
    """Text from outside is kept as it is: only who prints it knows what of it must be shown otherwise."""

    pieces: list[StyledPiece] = field(default_factory=list)
    end: str = "\n"

    def append(self, text: object, style: str = "", *, is_content: bool = False) -> Self:
        self.pieces.append(StyledPiece(str(text), style, is_content))
        return self

    def append_line(self, other: DrawnLine) -> Self:
        self.pieces += other.pieces
        return self

    def for_terminal(self) -> Text:
        """Nothing in it moves the cursor, colours, hides or reorders."""
        from rich.text import Text

        text = Text(tab_size=8)
        for piece in self.pieces:
            text.append(legible(piece.text), piece.style or None)
        return text

    def for_pipe(self) -> str:
        """What files and commits say stays as it is, carriage returns too; a name must not pose as another line."""
        return "".join(harmless(piece.text, keep_lines=piece.is_content) for piece in self.pieces) + self.end


def paint(text: object, style: str = "") -> DrawnLine:
    """Names, numbers and our own words."""
    return DrawnLine().append(text, style)


def content(text: str, style: str = "") -> DrawnLine:
    """What a file, a commit or a program says."""
    return DrawnLine().append(text, style, is_content=True)


_STYLES = {"create": "green", "delete": "red"}


def draw_patch(data: Any, person: bool) -> Iterator[DrawnLine]:
    """What was done, lines added and removed, and the name. In a pipe parted by tabs."""
    counts = [_counts(file, person) for file in data["files"]]
    width = max((len(f"{plus} {minus}") for plus, minus in counts), default=0)
    for file, (plus, minus) in zip(data["files"], counts, strict=True):
        name = _shown_path(file["path"])
        if file.get("origin"):
            name = f"{_shown_path(file['origin'])} => {name}"
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


def _counts(file: Any, person: bool) -> tuple[str, str]:
    """`-` where nobody counted, as git says of binary files."""
    plus, minus = file.get("insertions"), file.get("deletions")
    if plus is None or minus is None:
        return "-", "-"
    return (f"+{plus:,}", f"-{minus:,}") if person else (str(plus), str(minus))


def _shown_path(path: str) -> str:
    return path.removeprefix("project:")


def found(data: Any) -> Iterator[DrawnLine]:
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


def numbered(lines: list[str], first: int, person: bool) -> Iterator[DrawnLine]:
    width = len(str(first + len(lines) - 1))
    for number, line in enumerate(lines, first):
        start = paint(f"{number:>{width}}  ", "green") if person else DrawnLine()
        yield start.append_line(content(line))


def listed_file(name: str, size: int | None, modified: str, person: bool) -> DrawnLine:
    if not person:
        return file_name(name, person)
    shown = "" if size is None else f"{size:,}"
    return (
        paint(f"{shown:>12}  ", "green")
        .append_line(paint(modified[:16].replace("T", " "), "dim"))
        .append("  ")
        .append_line(file_name(name, person))
    )


def file_name(name: str, person: bool) -> DrawnLine:
    return paint(name, "bold blue" if person and name.endswith("/") else "")
