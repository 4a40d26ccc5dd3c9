"""What a result looks like in a terminal or a pipe. Each drawing gives lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from toolgate.core.display import harmless, legible

if TYPE_CHECKING:
    from rich.text import Text


class Piece(NamedTuple):
    text: str
    style: str
    is_content: bool


@dataclass(slots=True)
class Line:
    """Text from outside is kept as it is: only who prints it knows what of it must be shown otherwise."""

    pieces: list[Piece] = field(default_factory=list)
    end: str = "\n"

    def append(self, text: object, style: str = "", *, is_content: bool = False) -> Self:
        self.pieces.append(Piece(str(text), style, is_content))
        return self

    def append_line(self, other: Line) -> Self:
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


def paint(text: object, style: str = "") -> Line:
    """Names, numbers and our own words."""
    return Line().append(text, style)


def content(text: str, style: str = "") -> Line:
    """What a file, a commit or a program says."""
    return Line().append(text, style, is_content=True)
