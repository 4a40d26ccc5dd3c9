"""Help pages: aligned plain text, folded to the width of the terminal, with colours on a terminal only."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolgate.kits.terminal.command import CommandGroup, Parameter, TypedCommand

    Section = tuple[str, Sequence[tuple[str, str]]]
    """A title, and lines of a name and what it means."""

LONGEST_NAME = 28
"""What is longer stands on a line of its own, with its meaning below."""
WIDTH = 100


def of_command(command: TypedCommand, path: str) -> str:
    words = [_place(one) for one in command.arguments if not one.told.hidden]
    arguments = [(one.shown, _meaning(one)) for one in command.arguments if not one.told.hidden]
    sections: list[Section] = [("Arguments", arguments), ("Options", _options(command.options))]
    return _page(" ".join((path, "[OPTIONS]", *words)), command.help, sections, command.epilog)


def of_group(group: CommandGroup, path: str) -> str:
    options = _options(group.alone.options if group.alone else ())
    commands = [(name, each.help.partition("\n\n")[0].replace("\n", " ")) for name, each in group.commands.items()]  # fmt: skip
    epilog = group.alone.epilog if group.alone else ""
    sections: list[Section] = [("Options", options), ("Commands", commands)]
    return _page(f"{path} [OPTIONS] COMMAND [ARGS]...", group.help, sections, epilog)


def of_root(path: str, help: str, sections: Sequence[Section], epilog: str) -> str:  # noqa: A002
    return _page(f"{path} [OPTIONS] COMMAND [ARGS]...", help, sections, epilog)


def show(page: str) -> None:
    sys.stdout.write(page)


def _page(usage: str, text: str, sections: Sequence[Section], epilog: str) -> str:
    width = _width()
    lines = [f"{_styled('Usage:', '1')} {usage}", ""]
    for line in text.splitlines():
        lines += _folded(line, width)
    for title, rows in sections:
        if rows:
            alike = [each for other, each in sections if (other == "Options") == (title == "Options")]
            left = min(max(len(name) for each in alike for name, _ in each), LONGEST_NAME)
            lines += ["", _styled(title, "1"), *_rows(rows, left, width)]
    if epilog:
        lines += ["", epilog]
    return "\n".join(lines) + "\n"


def _rows(rows: Iterable[tuple[str, str]], left: int, width: int) -> Iterator[str]:
    for name, meaning in rows:
        folded = _folded(meaning, max(30, width - left - 4))
        if len(name) > left:
            yield f"  {_styled(name, '36')}"
        else:
            yield f"  {_styled(name, '36')}{' ' * (left - len(name))}  {folded.pop(0)}".rstrip()
        yield from (" " * (left + 4) + line for line in folded)


def _place(one: Parameter) -> str:
    return (one.shown if one.required else f"[{one.shown}]") + "..." * one.many


def _options(found: Sequence[Parameter]) -> list[tuple[str, str]]:
    rows = [(_spelling(one), _meaning(one)) for one in found]
    return [*rows, ("-h, --help", "Show this message and exit.")]


def _spelling(one: Parameter) -> str:
    names = ", ".join(sorted(one.told.names, key=len))
    names = names if names[:2] != "--" else f"    {names}"
    return f"{names} {one.shown}".rstrip()


def _meaning(one: Parameter) -> str:
    said = []
    low, high = one.told.min, one.told.max
    if low is not None and high is not None:
        said.append(f"{low:g} to {high:g}" if high < 1e6 else f"at least {low:g}")
    elif low:
        said.append(f"at least {low:g}")
    if one.default and not one.is_flag:
        said.append(f"default: {one.default}")
    if one.required:
        said.append("required")
    return one.told.help + (f" [{'; '.join(said)}]" if said else "")


def _folded(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _width() -> int:
    """Not that of a pipe, which has none: a page in a file is as wide as one that reads well."""
    try:
        given = int(os.environ.get("COLUMNS") or 0)
        return given or (min(os.get_terminal_size(1).columns, 120) if sys.stdout.isatty() else WIDTH)
    except (OSError, ValueError):
        return WIDTH


def _styled(text: str, style: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{style}m{text}\x1b[0m"
