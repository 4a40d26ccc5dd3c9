"""Programs as models read them: what was printed, what went wrong, what they left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolgate.core.display import harmless
from toolgate.core.rendering import Rendering, name, text

_OURS = re.compile(
    r"^(?=stderr:|output: |left: |asked: |proposal\b|warning: |ended by |stopped by the limit |exit -?\d|running as job )",
    re.M,
)
"""Lines with which toolgate says something of a program."""

_COLOURS = re.compile("\x1b\\[[0-9;:]*m")


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
