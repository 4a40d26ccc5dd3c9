"""Speech of the command line: results on stdout, everything else on stderr, text from outside made visible.

Only what is drawn on a terminal needs rich; a pipe gets plain text without it. So with columns: a terminal folds and cuts them
to its width, in a pipe each row is one whole line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO
from unicodedata import category, east_asian_width

from toolgate.core.display import harmless, legible, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
_NO_PLACE = frozenset({"Mn", "Me", "Cf"})


class Mode:
    """How this one command was asked to speak."""

    json = False
    verbose = False
    debug = False
    command = ""

    def reset(self, verbose: bool = False, debug: bool = False) -> None:
        self.json, self.command = False, ""
        self.verbose, self.debug = verbose, debug


mode = Mode()


class StyledText:
    """Text in parts, each with the name of its style: drawn by rich on a terminal, plain in a pipe."""

    __slots__ = ("parts",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self.parts = [(text, style)]

    def append(self, text: str, style: str = "") -> Self:
        self.parts.append((text, style))
        return self

    def __add__(self, other: StyledText) -> StyledText:
        made = StyledText()
        made.parts = self.parts + other.parts
        return made

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.parts)

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text.assemble(*((text, style) for text, style in self.parts))


def out() -> Console:
    """For what draws itself. What is no terminal has no width."""
    from rich.console import Console

    width, height = (None, None) if sys.stdout.isatty() else (ENDLESS, 25)
    return Console(
        file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False, width=width, height=height
    )  # fmt: skip


def err() -> Console:
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def put(item: Plain | str = "", style: str = "", *, end: str = "\n", whole: bool = False) -> None:
    """Draw something on stdout; `whole`: its lines are not folded."""
    if _is_drawn(sys.stdout) and (style or not isinstance(item, str)):
        out().print(item, style=style or None, end=end, soft_wrap=whole)
    else:
        sys.stdout.write((item if isinstance(item, str) else item.plain) + end)


def put_err(item: StyledText, style: str = "") -> None:
    if _is_drawn(sys.stderr) and (style or any(style for _, style in item.parts)):
        err().print(item, style=style or None)
    else:
        sys.stderr.write(item.plain + "\n")


def _is_drawn(stream: TextIO) -> bool:
    return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))


def say(text: str | StyledText, style: str = "") -> None:
    """A line for the human, on stdout; silent when a program reads."""
    if not mode.json:
        put(safe(text, lines=True) if isinstance(text, str) else text, style, whole=True)


def note(text: str, style: str = "dim") -> None:
    """A remark beside the result."""
    put_err(safe(text), style)


def safe(text: object, style: str = "", *, lines: bool = False) -> StyledText:
    """Text from outside: no markup, no control or bidirectional characters."""
    return StyledText(visible(str(text), keep_lines=lines), style)


def write_json(value: Any) -> None:
    """ASCII, so that nothing invisible or misleading reaches a terminal and every pipe can carry it."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, default=str) + "\n")


def finish(data: Any, *, ok: bool = True) -> bool:
    """With --json, print the answer of a command that is not a tool call in the shape of a Result."""
    if mode.json:
        write_json({"ok": ok, "tool": mode.command, "data": data, "error": None, "meta": no_meta()})
    return mode.json


def no_meta() -> dict[str, Any]:
    return {
        "call_id": "",
        "event_id": None,
        "duration_ms": 0.0,
        "tokens": 0,
        "cached": False,
        "truncated": False,
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> Columns:
    return Columns(columns, [[_drawn(cell) for cell in row] for row in rows], title)


def pairs(items: Iterable[tuple[str, object]]) -> Columns:
    rows = [(safe(name, "bold"), _drawn(value)) for name, value in items]
    return Columns(["|whole", ""], [*rows], headed=False)


def _drawn(cell: object) -> Plain:
    return cell if hasattr(cell, "plain") else safe(cell)


def show(value: Any) -> None:
    """A value as a person likes to read it: text, a table where it is one, else JSON."""
    if value is None:
        return
    if isinstance(value, str):
        _show_text(value.removesuffix("\n"))
    elif _is_table(value):
        names = list(dict.fromkeys(name for row in value for name in row))
        put(table(names, [[_cell(row.get(name)) for name in names] for row in value]))
    elif isinstance(value, dict) and value and all(map(_is_small, value.values())):
        put(pairs((str(name), _cell(item)) for name, item in value.items()))
    else:
        put(pretty(value), whole=True)


def _show_text(text: str) -> None:
    if sys.stdout.isatty():
        put(StyledText(legible(text, keep_lines=True)), whole=True)
    else:
        sys.stdout.write(harmless(text, keep_lines=True) + "\n")


def pretty(value: Any) -> StyledText | Text:
    text = safe(json.dumps(value, indent=2, ensure_ascii=False, default=str), lines=True)
    if not _is_drawn(sys.stdout):
        return text
    from rich.highlighter import JSONHighlighter

    return JSONHighlighter()(text.__rich__())


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, dict) and row and len(row) <= 8 for row in value)
        and all(_is_small(cell) for row in value for cell in row.values())
    )


def _is_small(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 8 and all(isinstance(item, str | int | float) for item in value)
    return (
        value is None
        or isinstance(value, bool | int | float)
        or (isinstance(value, str) and "\n" not in value)
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
