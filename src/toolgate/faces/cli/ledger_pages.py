"""How events look: one line each in a tail, one block each in the life of a call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import iso
from toolgate.core.errors import InvalidArgs
from toolgate.core.event import BY_KIND
from toolgate.core.records import replace
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.speech import StyledText
from toolgate.kits.words import body_of, by_whom, cut_in_words, event_as_data, program_in_words

if TYPE_CHECKING:
    from toolgate.kits.terminal.speech import Columns
    from toolgate.project.record import Record
    from toolgate.storage.port import Filter, Row

STYLES = {
    "committed": "green", "approved": "green", "granted": "green", "resolved": "green", "asked": "yellow",
    "limited": "yellow", "unknown": "bold yellow", "denied": "red", "refused": "red", "rejected": "red",
    "failed": "red", "flood": "red", "paused": "bold red",
}  # fmt: skip
COLUMNS = ["event|right", "time|whole", "kind|whole", "persona|whole", "tool|whole", "what|cut"]


async def tail(wanted: Filter, follow: bool, root: Path | None) -> None:
    unknown = [kind for kind in wanted.kinds if kind not in BY_KIND]
    if unknown:
        raise InvalidArgs(f"there are no events of kind {unknown[0]!r}", f"use one of: {', '.join(BY_KIND)}")
    async with project.record(root) as record:
        rows = (await record.events(wanted))[::-1]
        if not follow:
            if not speech.finish([event_as_data(row) for row in rows]):
                speech.put(events_table(rows))
            return
        _print_lines(rows)
        await _follow(record, wanted, rows[-1].seq if rows else (await record.head()).seq)


async def _follow(record: Record, wanted: Filter, after: int) -> None:
    """Until Ctrl-C."""
    while True:
        await record.backend.changed(5.0)
        rows = await record.events(replace(wanted, after=after, newest_first=False, limit=1000))
        _print_lines(rows)
        after = rows[-1].seq if rows else after


def _print_lines(rows: list[Row]) -> None:
    for row in rows:
        if speech.mode.json:
            speech.write_json(event_as_data(row))
        else:
            speech.say(line(row))


def events_table(rows: list[Row]) -> Columns:
    """The day is said once where it is the same for all."""
    days = {iso(row.at)[:10] for row in rows}
    same = len(days) == 1
    drawn = [
        [row.seq, iso(row.at)[11 if same else 0 : 19], kind(row), row.persona, row.tool, gist(row)]
        for row in rows
    ]
    return speech.table(COLUMNS, drawn, title=f"{days.pop()} (UTC)" if same else "")


def kind(row: Row) -> StyledText:
    return StyledText(row.kind, STYLES.get(row.kind, ""))


def line(row: Row) -> StyledText:
    text = speech.safe(f"{row.seq:>6}  {iso(row.at)}  ", "dim")
    return text + kind(row) + speech.safe(f"  {row.persona}  {row.tool}  {gist(row)}")


def gist(row: Row) -> str:
    body = body_of(row)
    try:
        return _gist(row.kind, body)
    except (KeyError, TypeError):
        return json.dumps(body, default=str)


def _gist(kind: str, body: dict[str, Any]) -> str:
    """What matters of an event, in one line."""
    match kind:
        case "asked" | "denied" | "paused":
            return _title(body) + str(body.get("reason", ""))
        case "approved" | "refused" | "granted" | "revoked":
            return by_whom(body["by"], body["channel"]) + (
                f": {body['reason']}" if body.get("reason") else ""
            )
        case "started":
            return _title(body) + f"{body['decision']} by {body['rule']}"
        case "committed":
            return str(body.get("summary", ""))
        case "failed" | "unknown" | "rejected":
            return f"{body['code']}: {body['error']}"
        case "limited":
            return f"{body['limit']}, again in {body['retry_ms'] / 1000:.1f} s"
        case "configured":
            return f"policy {body['policy'][7:19]}…"
        case "requested":
            answer = str(body.get("status", "")) if body["allowed"] else f"refused: {body.get('reason', '')}"
            return f"{body['method']} {body['url']} → {answer}"
        case "elicited":
            why = f" ({body['reason']})" if body.get("reason") else ""
            return f"{body['server']} asked: {body.get('message', '')!r} → {body['action']}{why}"
        case "vaulted":
            return f"{body['op']} {body['secret']}, {by_whom(body['by'], body['channel'])}"
        case "resolved":
            return f"{body['outcome']}, says {body['by']}"
    return ", ".join(f"{name}={value}" for name, value in body.items())


def _title(body: dict[str, Any]) -> str:
    """What ran, where the event is about a program."""
    args = body.get("args")
    program = program_in_words(args, 60) if isinstance(args, dict) else ""
    return f"{program}: " if program else ""


async def show(ident: str, root: Path | None, whole: bool = False) -> None:
    async with project.record(root) as record:
        rows = await record.life(await options.whole_id(record.events, ident))
        if whole:
            rows = [row._replace(body=json.dumps(await record.whole(row))) for row in rows]
    if speech.finish([event_as_data(row) for row in rows]):
        return
    speech.say(life_line(rows))
    for row in rows:
        speech.put()
        speech.put(speech.safe(f"event {row.seq}  ", "bold") + kind(row))
        speech.put(speech.pairs(_facts(row)))


def life_line(rows: list[Row]) -> StyledText:
    """asked 3 → approved 4 → started 5 → committed 6"""
    text = speech.safe(f"{rows[0].persona}: {rows[0].tool}  ".lstrip(": "), "bold")
    for index, row in enumerate(rows):
        text.append(" → " if index else "").append(f"{row.kind} {row.seq}", STYLES.get(row.kind, ""))
    return text


def _facts(row: Row) -> Iterator[tuple[str, object]]:
    yield "at", iso(row.at)
    for name in ("call", "conversation", "ref", "claim"):
        if getattr(row, name):
            yield name, getattr(row, name)
    for name, value in body_of(row).items():
        if name == "preview":
            yield name, speech.safe(value, lines=True)
        elif name == "expires":
            yield name, iso(value)
        elif name == "cut":
            yield name, cut_in_words(value)
        else:
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    yield "links to", row.prev
    yield "hash", row.hash
    yield "sealed with", f"key version {row.key}"
