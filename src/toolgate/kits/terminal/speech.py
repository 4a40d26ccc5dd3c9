"""Speech of the command line: results on stdout, everything else on stderr, text from outside made visible.

Only what is drawn on a terminal needs rich; a pipe gets plain text without it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Self, TextIO

from toolgate.core.display import harmless, legible, visible
from toolgate.core.wire import in_ascii
from toolgate.kits.terminal.columns import ENDLESS, Columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.text import Text

    from toolgate.kits.terminal.columns import Plain


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


def ascii_json(text: str) -> str:
    """The same JSON in ASCII: what is not can only stand in its strings."""
    return in_ascii(text)


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
