"""How questions, grants and events look to programs; the same as `--json` of the command line."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

from toolgate.core.clock import iso
from toolgate.core.ports import Question
from toolgate.facade import Gate
from toolgate.gate.shape import cut
from toolgate.kits import pieces
from toolgate.kits.words import grant_in_words, moves_of
from toolgate.ledger.chain import row_text
from toolgate.ledger.state import Grant
from toolgate.storage.port import Row

LISTED = 64 << 10
"""Characters of one question in a list."""


def event(row: Row) -> dict[str, Any]:
    """The columns, with the body opened and the time in ISO 8601. A damaged body is shown as it is."""
    try:
        body = json.loads(row.body)
    except ValueError:
        body = {"damaged": row.body}
    return row._asdict() | {"at": iso(row.at), "body": body}


def question(item: Question) -> dict[str, Any]:
    return vars_of(item) | {
        "effects": asdict(item.effects), "args": dict(item.args), "channels": list(item.channels),
        "asked_at": iso(item.asked_at), "expires_at": iso(item.expires_at),
        "moves": [{"from": old, "to": new} for old, new in moves_of(item.preview)],
    }  # fmt: skip


def vars_of(item: Question) -> dict[str, Any]:
    """Its fields as they are: `asdict` would copy megabytes of arguments."""
    return {each.name: getattr(item, each.name) for each in fields(item)}


def listed(item: Question) -> dict[str, Any]:
    """One of many: what is long is cut and says so, `cut` too. The question by itself has all of it."""
    if sum(pieces.extent_of(item)) <= LISTED:
        return question(item)
    short = replace(item, args=cut(dict(item.args), LISTED // 2), preview=cut(item.preview, LISTED // 2))
    return question(short) | {"cut": True}


def grant(item: Grant) -> dict[str, Any]:
    body = item.body
    return {
        "id": item.id, "persona": item.row.persona, "tool": item.row.tool, "by": body["by"],
        "channel": body["channel"], "args": body.get("args", {}), "paths": body.get("paths", []),
        "conversation": body.get("only_conversation", ""), "uses": item.uses,
        "max_uses": body.get("max_uses", 0), "expires_at": iso(item.expires), "event_id": item.row.seq,
        "words": grant_in_words(item.row.persona, item.row.tool, body, item.expires),
    }  # fmt: skip


def proof(gate: Gate, row: Row, *, sealed: bool) -> dict[str, Any]:
    """What anybody can recompute, and with `sealed` whether the seal is right."""
    fault = gate.fault(row, sealed=sealed)
    return {
        "text": row_text(row), "hash": row.hash, "prev": row.prev, "key": row.key,
        "seal_checked": sealed, "ok": not fault, "fault": fault,
    }  # fmt: skip
