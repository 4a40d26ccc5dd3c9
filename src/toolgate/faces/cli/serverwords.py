"""Servers in words: what `toolgate servers` and `toolgate doctor` say of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

Finding = tuple[Literal["ok", "warn", "bad"], str, str, str]
_STATES = {
    "disabled": "disabled in toolgate.yaml",
    "unseen": "not asked yet",
    "idle": "not running; started when it is needed",
    "starting": "starting",
    "ready": "running",
    "suspect": "running, but a call was stopped",
    "waiting": "failed; it is tried again",
    "broken": "failed many times; it is tried again once in a while",
}


def in_words(status: Mapping[str, Any]) -> str:
    words = _STATES[status["state"]]
    return f"{words} in {status['retry_in_s']:g} s" if status["retry_in_s"] else words


def server_findings(status: Mapping[str, Any], answer: float | BaseException | None) -> Iterator[Finding]:
    """What a doctor says of one server: does it answer, is something held, does something not enter."""
    name = f"server {status['name']}"
    if isinstance(answer, BaseException):
        found = str(answer) or "it did not answer in time"
        yield (
            "bad",
            name,
            found,
            getattr(answer, "fix", "") or "start its command by hand to see what it says",
        )
    elif answer is not None:
        count = len(status["tools"])
        yield "ok", name, f"answers in {answer:.0f} ms, with {count} approved tools", ""
    elif status["state"] == "disabled":
        yield "ok", name, in_words(status), ""
    else:
        fix = f"look at it and approve it: `toolgate servers approve {status['name']}`"
        yield "warn", name, "nobody has approved it as it is now, so it is not started", fix
    if status["held"] and not isinstance(answer, BaseException):
        fix = f"`toolgate servers diff {status['name']}` shows what changed"
        yield "warn", name, f"held: {', '.join(sorted(status['held']))}", fix
    for tool, why in status["refused"].items():
        yield "warn", name, f"{tool} does not enter: {why}", "the server's author can mend that"


def ago(at: float) -> str:
    if not at:
        return ""
    seconds = max(0.0, time.time() - at)
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds / 86_400:.0f} days ago"
