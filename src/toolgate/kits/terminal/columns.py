"""Columns of text. A terminal folds and cuts them to its width, with rich; in a pipe each row is one whole line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from unicodedata import category, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement
    from rich.table import Table

ENDLESS = 1 << 30
"""The width of what is no terminal: nothing is folded, cut or filled up to it."""
_HINTS: dict[str, dict[str, Any]] = {
    "": {"overflow": "fold"},
    "right": {"justify": "right", "no_wrap": True},
    "whole": {"no_wrap": True, "overflow": "ellipsis"},
    "cut": {"no_wrap": True, "overflow": "ellipsis"},
}
_GAP = "  "
_NO_PLACE = frozenset({"Mn", "Me", "Cf"})


class Plain(Protocol):
    """What rich can draw, and a pipe gets as text."""

    @property
    def plain(self) -> str: ...


class Columns:
    """A column is its name, or `name|hint`: `right`, `whole` (narrowed last), `cut` (to what the others leave)."""

    def __init__(
        self, columns: Sequence[str], rows: list[Sequence[Plain]], title: str = "", headed: bool = True
    ) -> None:
        self.rows, self.title, self.headed = rows, title, headed
        self._named = [(name, hint) for name, _, hint in (column.partition("|") for column in columns)]

    def add_row(self, *cells: Plain) -> None:
        self.rows.append(cells)

    @property
    def plain(self) -> str:
        return "\n".join(self._lines())

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement.get(console, options, self._table(options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < ENDLESS:
            yield self._table(options.max_width)
            return
        from rich.segment import Segment

        # past the folding, which would also make spaces of tabs
        yield from (Segment(f"{line}\n") for line in self._lines())

    def _table(self, width: int) -> Table:
        """What survives narrow terminals and both colour schemes."""
        from rich.table import Table

        made = Table(
            box=None, pad_edge=False, header_style="bold", title=self.title or None, title_justify="left",
            show_header=self.headed,
        )  # fmt: skip
        for name, hint in self._named:
            made.add_column(name, **_HINTS[hint])
        for row in _cut(self._named, self.rows, width):
            made.add_row(*row)
        return made

    def _lines(self) -> Iterator[str]:
        if self.title:
            yield self.title
        head = [[name for name, _ in self._named]] if self.headed else []
        rows = [*head, *([cell.plain for cell in row] for row in self.rows)]
        widths = [max((_width(row[index]) for row in rows), default=0) for index in range(len(self._named))]
        for row in rows:
            parts = [cell.split("\n") for cell in row]
            for at in range(max(map(len, parts), default=0)):
                line = ""
                for cell, width, (_, hint) in zip(parts, widths, self._named, strict=True):
                    shown = cell[at] if at < len(cell) else ""
                    fill = " " * (width - _cells(shown))
                    line += (fill + shown if hint == "right" else shown + fill) + _GAP
                yield line.rstrip()


def _width(text: str) -> int:
    return max(map(_cells, text.split("\n")))


def _cells(text: str) -> int:
    """How many places of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(char) in "WF" else category(char) not in _NO_PLACE for char in text)


def _cut(
    named: list[tuple[str, str]], rows: Sequence[Sequence[Plain]], width: int
) -> Sequence[Sequence[Any]]:
    """Shorten the column marked `cut` to what the others leave of the line, so that each row stays one line."""
    place = next((index for index, (_, hint) in enumerate(named) if hint == "cut"), None)
    if place is None:
        return rows
    others = (
        max(len(name), *(_cells(row[index].plain) for row in rows), 0)
        for index, (name, _) in enumerate(named)
        if index != place
    )
    room = max(20, width - sum(others) - len(_GAP) * len(named))
    return [[_shortened(cell, room) if at == place else cell for at, cell in enumerate(row)] for row in rows]


def _shortened(cell: Any, room: int) -> Any:
    from rich.text import Text

    short: Text = cell.copy() if isinstance(cell, Text) else cell.__rich__()
    short.truncate(room, overflow="ellipsis")
    return short
