"""Programs as models read them, and as they are drawn at a terminal: what was printed, what went wrong, what they left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolgate.core.display import harmless
from toolgate.core.rendering import Rendering, name, text
from toolgate.kits.terminal.drawing import DrawnLine, content, draw_patch, paint

_OURS = re.compile(
    r"^(?=stderr:|output: |left: |asked: |proposal\b|warning: |ended by |stopped by the limit |exit -?\d|running as job )",
    re.M,
)
"""Lines with which toolgate says something of a program."""

_COLOURS = re.compile("\x1b\\[[0-9;:]*m")
_DIFF = {"+": "green", "-": "red", "@": "cyan"}
_STATES = {"applied": "green", "pending": "yellow"}


def ran(data: Any, args: Mapping[str, Any]) -> str:
    """stdout as it is; then only what there is to say. A line of the program that reads like one of these is quoted."""
    if data.get("job_id"):
        return f"running as job {data['job_id']}: code_status tells how it stands"
    out = _printed(data["stdout"]).rstrip("\n")
    parts = [out] if out else []
    if data["stderr"]:
        parts.append("stderr:\n" + _printed(data["stderr"]).rstrip("\n"))
    parts += _rest(data)
    return "\n".join(parts)


def _printed(output: str) -> str:
    return _OURS.sub("| ", text(_COLOURS.sub("", output)))


def _rest(data: Any) -> Iterator[str]:
    import orjson

    for value in data["outputs"]:
        yield f"output: {orjson.dumps(value).decode()}"
    for file in data["files"]:
        yield f"left: {name(file['path'])} ({file['size']:,} bytes)"
    for request in data["requests"]:
        answer = str(request["status"]) if request["allowed"] else f"refused: {request['reason']}"
        yield f"asked: {request['method']} {harmless(request['url'])}: {answer}"
    if data["proposal"]:
        yield from _proposal(data["proposal"])
    for warning in data["warnings"]:
        yield f"warning: {harmless(str(warning))}"
    if data.get("signal"):
        yield f"ended by {data['signal']}"
    if data["limit"]:
        yield f"stopped by the limit {data['limit']}"
    if data["exit_code"] is not None:
        yield f"exit {data['exit_code']}"


def _proposal(proposal: Any) -> Iterator[str]:
    """What it changed in its view of the project, and what became of that."""
    ident = f" {proposal['execution']}" if proposal.get("execution") else ""
    event = f" (event {proposal['event_id']})" if proposal.get("event_id") else ""
    yield f"proposal{ident}: {proposal.get('state', 'made')}{event}"
    yield from (f"  {file['op']} {name(file['path'])}" for file in proposal.get("files") or ())
    error = proposal.get("error")
    if error:
        yield f"  {error['code']}: {harmless(error['message'])}"
        yield f"  fix: {harmless(error['fix'])}"
    if proposal.get("next"):
        yield f"  {harmless(proposal['next'])}"


RENDERINGS: Mapping[str, Rendering] = {
    **dict.fromkeys(("exec.python", "exec.javascript", "exec.shell", "code.execute"), ran),
}


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
        yield from _drawn_proposal(data["proposal"])
    if person:
        yield _end(data)
    elif data["exit_code"]:
        yield _named("exit", str(data["exit_code"]))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _named(name: str, value: str) -> DrawnLine:
    return paint(f"{name}: ", "bold").append_line(paint(value))


def _drawn_proposal(proposal: Any) -> Iterator[DrawnLine]:
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
