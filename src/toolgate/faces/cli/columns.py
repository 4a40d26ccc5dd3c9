"""Plain columns. A terminal folds and cuts them to its width; in a pipe each row is one whole line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

ENDLESS = 1 << 30
"""The width of what is no terminal: nothing is folded, cut or filled up to it."""
_HINTS: dict[str, dict[str, Any]] = {
    "": {"overflow": "fold"},
    "right": {"justify": "right", "no_wrap": True},
    "whole": {"no_wrap": True, "overflow": "ellipsis"},
    "cut": {"no_wrap": True, "overflow": "ellipsis"},
}
_GAP = "  "


@dataclass
class Columns:
    """A column is its name, or `name|hint`: `right`, `whole` (narrowed last), `cut` (to what the others leave)."""

    columns: Sequence[str]
    rows: list[Sequence[Text]] = field(default_factory=list)
    title: str = ""
    headed: bool = True

    def add_row(self, *cells: Text) -> None:
        self.rows.append(cells)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._table(options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < ENDLESS:
            yield self._table(options.max_width)
            return
        for line in self._lines():
            yield from line.render(
                console, end="\n"
            )  # past the folding, which would also make spaces of tabs

    @property
    def _named(self) -> list[tuple[str, str]]:
        return [(name, hint) for name, _, hint in (column.partition("|") for column in self.columns)]

    def _table(self, width: int) -> Table:
        """What survives narrow terminals and both colour schemes."""
        made = Table(
            box=None, pad_edge=False, header_style="bold", title=self.title or None, title_justify="left",
            show_header=self.headed,
        )  # fmt: skip
        for name, hint in self._named:
            made.add_column(name, **_HINTS[hint])
        for row in _cut(self._named, self.rows, width):
            made.add_row(*row)
        return made

    def _lines(self) -> Iterator[Text]:
        if self.title:
            yield Text(self.title, "italic")
        named = self._named
        head = [[Text(name, "bold") for name, _ in named]] if self.headed else []
        rows = [*head, *self.rows]
        widths = [max((_width(row[index]) for row in rows), default=0) for index in range(len(named))]
        for row in rows:
            parts = [cell.split("\n", allow_blank=True) for cell in row]
            for at in range(max(map(len, parts), default=0)):
                line = Text()
                for cell, width, (_, hint) in zip(parts, widths, named, strict=True):
                    shown = cell[at] if at < len(cell) else Text()
                    fill = " " * (width - shown.cell_len)
                    line += Text.assemble(fill, shown, _GAP) if hint == "right" else shown + Text(fill + _GAP)
                line.rstrip()
                yield line


def _width(cell: Text) -> int:
    return max((line.cell_len for line in cell.split("\n", allow_blank=True)), default=0)


def _cut(named: list[tuple[str, str]], rows: list[Sequence[Text]], width: int) -> list[Sequence[Text]]:
    """Shorten the column marked `cut` to what the others leave of the line, so that each row stays one line."""
    place = next((index for index, (_, hint) in enumerate(named) if hint == "cut"), None)
    if place is None:
        return rows
    others = (
        max(len(name), *(row[index].cell_len for row in rows), 0)
        for index, (name, _) in enumerate(named)
        if index != place
    )
    room = max(20, width - sum(others) - len(_GAP) * len(named))
    return [[_shortened(cell, room) if at == place else cell for at, cell in enumerate(row)] for row in rows]


def _shortened(cell: Text, room: int) -> Text:
    short = cell.copy()
    short.truncate(room, overflow="ellipsis")
    return short
