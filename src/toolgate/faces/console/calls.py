"""Rows of the ledger, told as calls: who, what, on what, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgate.facade import Gate
from toolgate.kits import diffs
from toolgate.kits.words import body_of, by_whom, program_in_words
from toolgate.storage.port import Row

# kind of the last row → (word, meaning); the four meanings have a shape, a colour and this word
OUTCOMES: dict[str, tuple[str, str]] = {
    "committed": ("done", "allowed"), "approved": ("approved", "allowed"), "granted": ("granted", "allowed"),
    "asked": ("asks", "asks"), "started": ("running", "asks"), "limited": ("limited", "refused"),
    "failed": ("failed", "refused"), "denied": ("denied", "refused"), "refused": ("refused", "refused"),
    "rejected": ("rejected", "refused"), "expired": ("expired", "refused"), "flood": ("flood", "refused"),
    "revoked": ("revoked", "refused"), "paused": ("paused", "refused"), "unknown": ("unknown", "unknown"),
    "resolved": ("resolved", "allowed"), "undone": ("undone", "allowed"),
}  # fmt: skip
_OBJECTS = (
    "path",
    "paths",
    "file_path",
    "source",
    "url",
    "pattern",
    "query",
    "command",
    "argv",
    "name",
    "events",
    "tool",
)

_PARSED = 100_000
_PASSING = ("asked", "started", "unknown")


@dataclass
class CallLine:
    """One call, or an event that belongs to none."""

    seq: int
    """The newest event about it."""
    at: int
    persona: str
    tool: str
    conversation: str
    object: str
    kind: str
    detail: str = ""
    duration_us: int = 0
    call: str = ""
    kinds: list[str] = field(default_factory=list)
    over: bool = False
    """What it says was open for a while, and is not any more."""

    @property
    def outcome(self) -> str:
        return OUTCOMES.get(self.kind, (self.kind, ""))[0]

    @property
    def meaning(self) -> str:
        return "plain" if self.over else OUTCOMES.get(self.kind, ("", ""))[1] or "plain"


def calls(rows: Iterable[Row]) -> list[CallLine]:
    """Newest first, one line for all rows of a call; `rows` come newest first."""
    made: dict[str, CallLine] = {}
    for row in rows:
        key = row.call or row.ref or f"event {row.seq}"
        body = body_of(row)
        line = made.get(key)
        if line is None:
            line = made[key] = CallLine(
                row.seq,
                row.at,
                row.persona,
                row.tool,
                row.conversation,
                "",
                row.kind,
                _detail(row.kind, body),
                call=row.call,
            )
        line.kinds.append(row.kind)
        line.object = line.object or object_of(body)
        line.conversation = line.conversation or row.conversation
        line.duration_us = line.duration_us or int(body.get("duration_us") or 0)
    return list(made.values())


async def events(gate: Gate, rows: Iterable[Row]) -> list[tuple[Row, CallLine]]:
    """One line for each row. One that asked, started or was in doubt is marked only as long as that is so."""
    standing = await gate.standing()
    lines = [(row, calls([row])[0]) for row in rows]
    for row, line in lines:
        line.over = row.kind in _PASSING and row.seq not in standing
    return lines


def object_of(body: Mapping[str, Any]) -> str:
    """What a call was about: the files it changes, else the argument that names something."""
    change = body.get("change")
    if isinstance(change, list) and change:
        names = [
            str(entry.get("path", "")).removeprefix("project:") for entry in change if isinstance(entry, dict)
        ]
        return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""
    preview = body.get("preview")
    if isinstance(preview, str) and 0 < len(preview) <= _PARSED and (files := diffs.parse(preview)):
        return files[0].path + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    args = body.get("args")
    if not isinstance(args, dict):
        return ""
    if program := program_in_words(args):
        return program.removeprefix("run ")
    for name in _OBJECTS:
        if args.get(name) not in (None, "", []):
            value = args[name]
            text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            return short(text.removeprefix("project:"))
    return short(next((str(value) for value in args.values() if isinstance(value, str) and value), ""))


def short(text: str, most: int = 80) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= most and line == text else line[: most - 1] + "…"


def _detail(kind: str, body: Mapping[str, Any]) -> str:
    match kind:
        case "denied" | "asked" | "paused" | "adapted":
            return str(body.get("reason", ""))
        case "refused" | "approved" | "revoked" | "granted":
            why = f": {body['reason']}" if body.get("reason") else ""
            return by_whom(body.get("by", "?"), body.get("channel", "?")) + why
        case "failed" | "unknown" | "rejected":
            return str(body.get("error", ""))
        case "committed":
            return str(body.get("summary", ""))
        case "limited":
            return str(body.get("limit", ""))
        case "flood":
            return f"{body.get('count', '?')} refusals counted together"
        case "configured":
            return f"policy {str(body.get('policy', ''))[7:19]}"
        case "requested":
            return f"{body.get('method', '?')} {body.get('url', '?')}"
        case "elicited":
            return f"{body.get('server', '?')} asked the human → {body.get('action', '?')}"
        case "vaulted":
            return f"{body.get('op', '?')} {body.get('secret', '?')}, by {body.get('by', '?')}"
        case "resolved":
            return f"{body.get('outcome', '?')}, says {body.get('by', '?')}"
    return ""
