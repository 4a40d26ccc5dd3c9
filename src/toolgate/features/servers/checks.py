"""Check of the MCP servers for `toolgate doctor`, and the words for their states."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from toolgate.kits.terminal.checkup import Diagnosis, Patient

SERVER_SECONDS = 15.0
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


_NOT_HERE = frozenset({"idle", "unseen", "waiting", "broken"})


def elsewhere(status: Mapping[str, Any]) -> str:
    """Which other processes have it running, if this one has not."""
    pids = status.get("elsewhere") or ()
    if not pids or status["state"] not in _NOT_HERE:
        return ""
    return f"running in process {', '.join(map(str, pids))}"


def state_of(status: Mapping[str, Any]) -> str:
    """In a word or two."""
    return elsewhere(status) or str(status["state"])


def in_words(status: Mapping[str, Any]) -> str:
    if there := elsewhere(status):
        return f"{there}; not in this one"
    words = _STATES[status["state"]]
    return f"{words} in {status['retry_in_s']:g} s" if status["retry_in_s"] else words


def server_findings(status: Mapping[str, Any], answer: float | BaseException | None) -> Iterator[Diagnosis]:
    """What a doctor says of one server: does it answer, is something held, does something not enter."""
    name = f"server {status['name']}"
    if isinstance(answer, BaseException):
        found = str(answer) or "it did not answer in time"
        fix = getattr(answer, "fix", "") or "start its command by hand to see what it says"
        yield Diagnosis("bad", name, found, fix)
    elif answer is not None:
        count = len(status["tools"])
        yield Diagnosis("ok", name, f"answers in {answer:.0f} ms, with {count} approved tools")
    elif status["state"] == "disabled":
        yield Diagnosis("ok", name, in_words(status))
    else:
        fix = f"look at it and approve it: `toolgate servers approve {status['name']}`"
        yield Diagnosis("warn", name, "nobody has approved it as it is now, so it is not started", fix)
    if status["held"] and not isinstance(answer, BaseException):
        fix = f"`toolgate servers diff {status['name']}` shows what changed"
        yield Diagnosis("warn", name, f"held: {', '.join(sorted(status['held']))}", fix)
    for tool, why in status["refused"].items():
        yield Diagnosis("warn", name, f"{tool} does not enter: {why}", "the server's author can mend that")


async def servers(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Each is started and asked, all at once and not for long; what nobody has approved is not started."""
    upstream = patient.gate.upstream if patient.gate is not None else None
    if upstream is None:
        return
    known = upstream.status()
    approved = [
        one["name"] for one in known if one["approved"] and not one["moved"] and one["state"] != "disabled"
    ]
    asked = await asyncio.gather(
        *(upstream.check(name, SERVER_SECONDS) for name in approved), return_exceptions=True
    )
    answers = dict(zip(approved, asked, strict=True))
    for one in upstream.status():
        for finding in server_findings(one, answers.get(one["name"])):
            yield finding


CHECKS = (servers,)
