"""Drawings of `exec.*` and `fs.apply`: what programs printed, what they gave back and left, what they asked the network, what they would change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from toolgate.kits.terminal.drawing import DrawnLine, content, draw_patch, paint

_DIFF = {"+": "green", "-": "red", "@": "cyan"}
_STATES = {"applied": "green", "pending": "yellow"}


def draw_run(data: Any, person: bool) -> Iterator[DrawnLine]:
    if data["job_id"]:  # it has not run yet
        yield _named("job", f"{data['job_id']}; `toolgate jobs show {data['job_id']}` says how it stands")
        return
    yield from map(content, _lines(data["stdout"]))
    if data["stderr"]:
        if person and data["stdout"]:
            yield paint("stderr", "dim")
        yield from (content(line, "red") for line in _lines(data["stderr"]))
    for value in data["outputs"]:
        yield _named("output", json.dumps(value, ensure_ascii=False))
    for file in data["files"]:
        yield _named("left", f"{file['path']} ({file['size']:,} bytes)")
    for request in data["requests"]:
        answer = str(request["status"]) if request["allowed"] else f"refused: {request['reason']}"
        yield _named("asked", f"{request['method']} {request['url']} → {answer}")
    for warning in data["warnings"]:
        yield paint(f"warning: {warning}", "yellow")
    if data["proposal"]:
        yield from _proposal(data["proposal"])
    if person:
        yield _end(data)
    elif data["exit_code"]:
        yield _named("exit", str(data["exit_code"]))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _named(name: str, value: str) -> DrawnLine:
    return paint(f"{name}: ", "bold").append_line(paint(value))


def _proposal(proposal: Any) -> Iterator[DrawnLine]:
    state, count = proposal["state"], len(proposal["files"])
    style = _STATES.get(state, "red")
    yield paint(f"proposal {state}: ", f"bold {style}").append(f"{count} change{'s' * (count != 1)}")
    for line in _lines(proposal["diff"]) if proposal["diff"] else ():
        # the names of files are not lines that come or go
        head = line.startswith(("+++ ", "--- "))
        yield paint(line, "bold" if head else _DIFF.get(line[:1], ""))
    if proposal["error"]:
        yield paint(f"{proposal['error']['code']}: {proposal['error']['message']}", style)
        yield paint(f"fix: {proposal['error']['fix']}", "dim")
    elif state == "applied":
        yield paint(f"toolgate undo {proposal['event_id']} takes it back", "dim")


def _end(data: Any) -> DrawnLine:
    good = data["exit_code"] == 0
    code = "ended from outside" if data["exit_code"] is None else f"exit {data['exit_code']}"
    parts = [f"limit: {data['limit']}"] if data["limit"] else []
    parts += [f"{data['duration_ms']:.0f} ms", f"{data['memory'] / (1 << 20):.0f} MiB"]
    return paint(code, "green" if good else "bold red").append(" · " + " · ".join(parts), "dim")


DRAWINGS = {
    **dict.fromkeys(("exec.python", "exec.javascript", "exec.shell"), draw_run),
    "fs.apply": draw_patch,
}
