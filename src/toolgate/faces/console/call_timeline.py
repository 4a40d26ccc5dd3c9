"""Timeline of a call: asked, decided, approved by whom, started, settled; with what it did and how it is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from toolgate.core.apart import apart
from toolgate.core.clock import iso
from toolgate.core.errors import NotFound
from toolgate.facade import Gate
from toolgate.faces.console.calls import OUTCOMES, calls
from toolgate.faces.console.diff_view import ROOM, FileView, Painter, drawn, first
from toolgate.faces.console.markup import draw
from toolgate.faces.console.question import (
    AT_ONCE,
    MOST_CHARS,
    MOST_LINES,
    ArgumentRoom,
    ShownArgument,
    folded,
)
from toolgate.kits import diffs, pieces
from toolgate.kits.words import body_of, by_whom, cut_in_words
from toolgate.storage.port import Filter, Row

FACT = 4000
"""Characters of what else a row says."""
_SHOWN = frozenset({"args", "preview", "result", "result_json", "change", "artifacts", "trail", "effects"})
"""Parts of a body that the page shows in a place of their own."""


_NO_FILE = "nothing"
_DEEDS = {"create": "created", "modify": "changed", "delete": "deleted"}


@dataclass(frozen=True)
class ArtifactLine:
    path: str
    deed: str
    before: str
    after: str
    facts: list[tuple[str, str]]


@dataclass
class TimelineStep:
    row: Row
    word: str
    meaning: str
    said: str
    facts: list[tuple[str, str]]
    fault: str

    @property
    def proof(self) -> str:
        link = f"links to event {self.row.seq - 1:,}" if self.row.seq > 1 else "is the first event"
        return f"{link}, key v{self.row.key}, " + (self.fault or "verified")


@dataclass
class Life:
    number: int
    persona: str
    tool: str
    conversation: str
    call: str
    steps: list[TimelineStep]
    args: ShownArgument
    result: ShownArgument
    rationale: str
    files: list[FileView]
    plain: list[Markup]
    cut: int
    artifacts: list[ArtifactLine]
    findings: list[Mapping[str, Any]]
    undoable: bool
    undone_by: int
    undoes: list[int]
    question: str = ""
    open_question: bool = False
    related: list[Any] = field(default_factory=list)

    @property
    def last(self) -> TimelineStep:
        return self.steps[-1]

    @property
    def good(self) -> bool:
        return not any(step.fault for step in self.steps)


async def rows_of(gate: Gate, ident: str) -> list[Row]:
    if not ident.isascii() or len(ident) > 80:
        raise NotFound("nothing in the ledger has such a name", "open Activity to find it")
    rows = await gate.life(ident)
    found = {row.seq: row for row in rows}
    # a question's own rows end where a call used its approval; that call, perhaps a repeated one, goes on
    for call in {row.call for row in rows if row.call}:
        found |= {row.seq: row for row in await gate.life(call)}
    return sorted(found.values())


async def life(gate: Gate, ident: str, painter: Painter, *, whole: bool = False) -> Life:
    rows = await rows_of(gate, ident)
    bodies = dict(zip((row.seq for row in rows), await apart(list, map(body_of, rows)), strict=True))
    started = _first(rows, bodies, "started")
    asked = _first(rows, bodies, "asked")
    settled = _first(rows, bodies, "committed")
    base = asked or started or bodies[rows[0].seq]
    text = await _diff(gate, asked, started)
    parsed = await apart(diffs.parse, text) if text else []
    plain = text.split("\n") if text and not parsed else []
    most = MOST_LINES if whole else AT_ONCE
    room = MOST_CHARS if whole else ROOM
    shown, kept = first(parsed, most, room), plain[:most]
    cut = sum(file.size for file in parsed) + len(plain) - sum(file.size for file in shown) - len(kept)
    done = next((row for row in rows if row.kind == "committed"), None)
    undone = await _undone_by(gate, done)
    return Life(
        int(ident) if ident.isdigit() else rows[-1].seq, rows[0].persona, rows[0].tool, rows[0].conversation,
        next((row.call for row in rows if row.call), ""), [_step(gate, row, bodies[row.seq], row is rows[-1]) for row in rows],
        await apart(pretty, (started or asked or base).get("args"), most, room), await apart(_result, settled, most, room),
        _rationale(base),
        await drawn(shown, painter), [draw(line, ()) for line in kept], cut,
        [artifact(each) for each in settled.get("artifacts", ())] if settled else [], list(base.get("findings", ())),
        bool(done and started and (started.get("change") or _has_undo(gate, rows[0].tool)) and not undone), undone,
        list(started.get("undoes", ())) if started else [],
        next((row.ref for row in rows if row.kind == "asked"), ""), rows[-1].kind == "asked",
        await _related(gate, rows),
    )  # fmt: skip


def artifact(entry: Mapping[str, Any]) -> ArtifactLine:
    """From an entry of a Change's manifest, whose keys are recorded in the order of the alphabet."""
    op, size = str(entry.get("op", "")), entry.get("size")
    facts = [("size", f"{size:,} bytes")] if isinstance(size, int) else []
    modes = [_mode(entry.get(name)) for name in ("before_mode", "after_mode")]
    if modes[0] != modes[1]:
        facts.append(("mode", " → ".join(mode for mode in modes if mode)))
    return ArtifactLine(
        str(entry.get("path", "")).removeprefix("project:"), _DEEDS.get(op, op),
        str(entry.get("before") or _NO_FILE), str(entry.get("after") or _NO_FILE), facts,
    )  # fmt: skip


def _mode(bits: Any) -> str:
    return f"{bits:o}" if isinstance(bits, int) else ""


def _first(rows: Sequence[Row], bodies: Mapping[int, dict[str, Any]], kind: str) -> dict[str, Any] | None:
    return next((bodies[row.seq] for row in rows if row.kind == kind), None)


def _rationale(body: Mapping[str, Any]) -> str:
    trail = body.get("trail")
    return str(trail.get("rationale", "")) if isinstance(trail, dict) else ""


def _result(settled: Mapping[str, Any] | None, most: int, room: int) -> ShownArgument:
    if not settled:
        return ShownArgument("")
    if settled.get("result") is not None:
        return pretty(settled["result"], most, room)
    summary = str(settled.get("summary", ""))
    lines = [draw(line, ()) for line in summary.split("\n")] if summary[:1] in ("{", "[") else []
    return ShownArgument("", lines=lines)


def pretty(value: Any, most: int, room: int) -> ShownArgument:
    """As much of its JSON as there is room for."""
    return folded("", value, ArgumentRoom(most, room)) if value is not None else ShownArgument("")


def _has_undo(gate: Gate, tool: str) -> bool:
    found = gate.tool(tool)
    return found is not None and found.undo is not None


async def _diff(gate: Gate, asked: Mapping[str, Any] | None, started: Mapping[str, Any] | None) -> str:
    """As the question showed it; for a call that nobody was asked about, from the kept images."""
    if asked is not None and asked.get("preview"):
        return str(asked["preview"])
    return await gate.change_diff(started["change"]) if started is not None and started.get("change") else ""


async def _undone_by(gate: Gate, done: Row | None) -> int:
    if done is None:
        return 0
    rows = await gate.events(Filter(kinds=("undone",), after=done.seq, newest_first=True, limit=500))
    return next((row.seq for row in rows if body_of(row).get("event") == done.seq), 0)


async def _related(gate: Gate, rows: Sequence[Row]) -> list[Any]:
    """What else happened in the conversation, around it."""
    conversation = rows[0].conversation
    if not conversation:
        return []
    near = await gate.events(
        Filter(conversation=conversation, before=rows[-1].seq + 200, newest_first=True, limit=80)
    )
    own = {row.call for row in rows if row.call}
    return [line for line in calls(near) if line.call not in own][:6]


def _happened(body: Mapping[str, Any]) -> str:
    """Which files, or the summary where it is words; a summary in JSON is shown as the result."""
    paths = [str(each.get("path", "")).removeprefix("project:") for each in body.get("artifacts", ())]
    if paths:
        return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    summary = str(body.get("summary", ""))
    return "it happened" if not summary or summary[0] in "{[" else summary


def _step(gate: Gate, row: Row, body: dict[str, Any], last: bool) -> TimelineStep:
    word, meaning = OUTCOMES.get(row.kind, (row.kind, "plain"))
    if not last and row.kind in ("asked", "started"):
        word, meaning = row.kind, "plain"  # it asked, it does not any more
    facts = [(name, _fact(name, value)) for name, value in body.items() if name not in _SHOWN]
    fault = gate.fault(row)
    return TimelineStep(row, word, meaning or "plain", said(row.kind, body), facts, fault)


def _fact(name: str, value: Any) -> str:
    if name == "expires" and isinstance(value, int):
        return iso(value)
    if name == "cut":
        return cut_in_words(value)
    return value[:FACT] if isinstance(value, str) else pieces.beginning(value, FACT)


def said(kind: str, body: Mapping[str, Any]) -> str:
    """What a step of a life says, in one sentence."""
    get = body.get
    why = f": “{get('reason')}”" if get("reason") else ""
    match kind:
        case "asked":
            return f"because of {get('rule')}{why}"
        case "approved" | "granted" | "revoked" | "refused":
            return f"{by_whom(get('by', '?'), get('channel', '?'))}{why}"
        case "started":
            return f"{'approved' if get('decision') == 'ask' else 'allowed'}, under {get('rule')}"
        case "committed":
            return _happened(body) + (f" ({get('reconciled')})" if get("reconciled") else "")
        case "failed" | "unknown" | "rejected":
            return f"{get('code')}: {get('error')}"
        case "denied":
            return f"by {get('rule')}{why}"
        case "limited":
            return f"{get('limit')}, again in {int(get('retry_ms') or 0) / 1000:.1f} s"
        case "expired":
            return f"the {get('what')} ran out of time"
        case "undone":
            return f"event {get('event')} was taken back by {get('by')}"
        case "resolved":
            return f"{get('outcome')}, says {get('by')}{why}"
    return _aside(kind, body)


def _aside(kind: str, body: Mapping[str, Any]) -> str:
    """What is no step of a call's own life."""
    get = body.get
    match kind:
        case "requested":
            return f"{get('method')} {get('url')} → {get('status') or get('reason')}"
        case "elicited":
            # quoted, so that it cannot pose as what came of it
            asked = f"{get('server')} asked: {get('message', '')!r} → {get('action')}"
            return asked + (f" ({get('reason')})" if get("reason") else "")
        case "vaulted":
            return f"{get('op')} {get('secret')}, {by_whom(get('by', '?'), get('channel', '?'))}"
    return ""
