"""Results of calls, printed: drawn by the feature that has the tool, else shown as data.

At a terminal a drawing is for a person; in a pipe it is plain, as native tools print. Every text from outside is part of
a `DrawnLine`, so that no file can speak to the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from toolgate.feature import everything, load
from toolgate.kits.terminal import failures, speech

if TYPE_CHECKING:
    from toolgate.core.result import Result
    from toolgate.kits.terminal.drawing import DrawnLine

    Drawing = Callable[[Any, bool], Iterator[DrawnLine]]

CHANGING = frozenset(
    f"fs.{word}"
    for word in ["write", "append", "edit", "save", "ensure_dir", "move", "delete", "patch", "apply"]
)


def show(result: Result, code: int | None = None) -> int:
    """Print a result; give the exit code."""
    if speech.mode.json:
        speech.write_json(result.as_dict())
    elif result.error is None:
        if not draw(result.tool, result.data):
            speech.show(_without_no_findings(result.data))
        if result.meta.truncated and not (isinstance(result.data, dict) and result.data.get("truncated")):
            speech.note("the result was shortened to fit the token budget", "yellow")
        if speech.mode.verbose or sys.stderr.isatty():
            _show_meta(result)
    else:
        draw_failed(result.tool, result.data)
        failures.tell(result.error.code.value, result.error.message, result.error.fix)
    if result.error is None:
        return failures.OK
    return failures.exit_code(result.error.code) if code is None else code


def _without_no_findings(data: Any) -> Any:
    """Every change says what the scan found; that it found nothing is no news to a person."""
    if isinstance(data, dict) and data.get("findings") == []:
        return {name: value for name, value in data.items() if name != "findings"}
    return data


def _show_meta(result: Result) -> None:
    meta = result.meta
    parts = [meta.call_id, f"event {meta.event_id}", f"{meta.duration_ms:.1f} ms", f"≈{meta.tokens} tokens"]
    parts += ["cached"] if meta.cached else []
    parts += [f"undo with: toolgate undo {meta.event_id}"] if to_undo(result.tool, result.data) else []
    speech.note(" · ".join(parts))


def drawing_of(tool: str) -> Drawing | None:
    """That of the feature that names the tool, and of no other: the rest is not loaded."""
    for feature in everything():
        if feature.drawings and any(tool in family.names for family in feature.families):
            found: Drawing | None = load(feature.drawings).get(tool)
            return found
    return None


def draw(tool: str, data: Any) -> bool:
    """Draw it, if this tool has a drawing; what was cut is said beside it."""
    drawing = drawing_of(tool)
    if drawing is None:
        return False
    person = sys.stdout.isatty()
    try:
        lines = list(drawing(data, person))
    except (KeyError, TypeError, AttributeError, ValueError):  # shortened beyond its shape: shown as it is
        return False
    if person and lines:
        from rich.text import Text

        speech.put(Text("\n").join(line.for_terminal() for line in lines), whole=True)
    elif not person:
        sys.stdout.writelines(line.for_pipe() for line in lines)
    if data.get("truncated") and data.get("next"):
        speech.note(f"… more: {data['next']}", "yellow")
    return True


def to_undo(tool: str, data: Any) -> bool:
    """Whether the call changed something that `toolgate undo` takes back."""
    if tool not in CHANGING or not isinstance(data, dict):
        return False
    if "created" not in data:
        return True  # moved, deleted or patched
    return bool(data["created"]) or data.get("before_hash") != data.get("new_hash")


def draw_failed(tool: str, data: Any) -> None:
    """Of a call that failed: what a program said before it was stopped, and what the scan found. The error says the
    rest, and on stdout a program would take facts of a refusal for those of a change."""
    if not isinstance(data, dict):
        return
    if "stdout" in data:
        draw(tool, data)
    if data.get("findings"):
        from toolgate.kits.terminal.drawing import found

        try:
            lines = list(found(data))
        except (KeyError, TypeError, AttributeError):
            return  # shortened beyond its shape; the error names the first of them
        for line in lines:
            speech.note("".join(piece.text for piece in line.pieces), "yellow")
