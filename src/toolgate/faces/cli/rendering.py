"""How results of certain tools are drawn: for a person at a terminal, and plainly for a pipe, as native tools do.

Without a drawing of its own a result is shown as data. Every text from outside is part of a `Line`, so that no file can
speak to the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from toolgate.faces.cli.drawings import changes, files, history, programs, search
from toolgate.kits.terminal import speech
from toolgate.kits.terminal.drawing import Line

Drawing = Callable[[Any, bool], Iterator[Line]]
CHANGES = ("fs.write", "fs.append", "fs.edit", "fs.save", "fs.ensure_dir", "fs.move", "fs.delete")
PROGRAMS = ("exec.python", "exec.javascript", "exec.shell")
DRAWINGS: dict[str, Drawing] = {
    "code.search": search.draw_search,
    "fs.search": search.draw_search,
    "code.read": files.draw_read,
    "fs.read": files.draw_contents,
    "code.list": files.draw_list,
    "fs.list": files.draw_entries,
    "fs.find": files.draw_found,
    "code.outline": files.draw_outline,
    "code.diff": history.draw_diff,
    "code.log": history.draw_log,
    "code.show": history.draw_show,
    "code.blame": history.draw_blame,
    "fs.patch": changes.draw_patch,
    "fs.apply": changes.draw_patch,
    **dict.fromkeys(CHANGES, changes.draw_changed),
    **dict.fromkeys(PROGRAMS, programs.draw_run),
}


def show(tool: str, data: Any) -> bool:
    """Draw it, if this tool has a drawing; what was cut is said beside it."""
    draw = DRAWINGS.get(tool)
    if draw is None:
        return False
    person = sys.stdout.isatty()
    try:
        lines = list(draw(data, person))
    except (KeyError, TypeError, AttributeError, ValueError):  # shortened beyond its shape: shown as it is
        return False
    if person:
        if lines:
            from rich.text import Text

            speech.put(Text("\n").join(line.for_terminal() for line in lines), whole=True)
    else:
        sys.stdout.writelines(line.for_pipe() for line in lines)
    if data.get("truncated") and data.get("next"):
        speech.note(f"… more: {data['next']}", "yellow")
    return True


def to_undo(tool: str, data: Any) -> bool:
    """Whether the call changed something that `toolgate undo` takes back."""
    if tool not in (*CHANGES, "fs.patch", "fs.apply") or not isinstance(data, dict):
        return False
    if "created" not in data:
        return True  # moved, deleted or patched
    return bool(data["created"]) or data.get("before_hash") != data.get("new_hash")


def show_failed(tool: str, data: Any) -> None:
    """Of a call that failed: what a program said before it was stopped, and what the scan found. The error says the
    rest, and on stdout a program would take facts of a refusal for those of a change."""
    if tool in PROGRAMS:
        show(tool, data)
    try:
        lines = list(changes.found(data or {}))
    except (KeyError, TypeError, AttributeError):
        return  # shortened beyond its shape; the error names the first of them
    for line in lines:
        speech.note("".join(piece.text for piece in line.pieces), "yellow")
