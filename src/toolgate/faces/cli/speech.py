"""How the command line speaks: results on stdout, everything else on stderr, text from outside made visible."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

from toolgate.core.display import harmless, legible, visible
from toolgate.core.wire import in_ascii
from toolgate.faces.cli.columns import ENDLESS, Columns


@dataclass
class Mode:
    """How this one command was asked to speak."""

    json: bool = False
    verbose: bool = False
    debug: bool = False
    command: str = ""

    def reset(self, verbose: bool = False, debug: bool = False) -> None:
        self.json, self.command = False, ""
        self.verbose, self.debug = verbose, debug


mode = Mode()


def out() -> Console:
    """What is no terminal has no width."""
    width, height = (None, None) if sys.stdout.isatty() else (ENDLESS, 25)
    return Console(
        file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False, width=width, height=height
    )  # fmt: skip


def err() -> Console:
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str | Text, style: str = "") -> None:
    """A line for the human, on stdout; silent when a program reads."""
    if not mode.json:
        out().print(
            safe(text, lines=True) if isinstance(text, str) else text, style=style or None, soft_wrap=True
        )


def note(text: str, style: str = "dim") -> None:
    """A remark beside the result."""
    err().print(safe(text), style=style or None)


def safe(text: object, style: str = "", *, lines: bool = False) -> Text:
    """Text from outside: no markup, no control or bidirectional characters.

    The style is a span, not the base: what is added behind keeps its own.
    """
    return Text().append(visible(str(text), keep_lines=lines), style or None)


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


def _drawn(cell: object) -> Text:
    return cell if isinstance(cell, Text) else safe(cell)


def show(value: Any) -> None:
    """A value as a person likes to read it: text, a table where it is one, else JSON."""
    console = out()
    if value is None:
        return
    if isinstance(value, str):
        _show_text(console, value.removesuffix("\n"))
    elif _is_table(value):
        names = list(dict.fromkeys(name for row in value for name in row))
        console.print(table(names, [[_cell(row.get(name)) for name in names] for row in value]))
    elif isinstance(value, Mapping) and value and all(map(_is_small, value.values())):
        console.print(pairs((str(name), _cell(item)) for name, item in value.items()))
    else:
        console.print(pretty(value), soft_wrap=True)


def _show_text(console: Console, text: str) -> None:
    if sys.stdout.isatty():
        console.print(Text(legible(text, keep_lines=True)), soft_wrap=True)
    else:
        sys.stdout.write(harmless(text, keep_lines=True) + "\n")


def pretty(value: Any) -> Text:
    text = safe(json.dumps(value, indent=2, ensure_ascii=False, default=str), lines=True)
    JSONHighlighter().highlight(text)
    return text


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, Mapping) and row and len(row) <= 8 for row in value)
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
