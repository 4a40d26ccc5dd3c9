"""Events whose bodies are too long for a row: the row keeps the beginning, the size and the hash of the whole.

Nobody may prune the journal, so no caller may fill it. Where the whole is still needed (an open question must show every
byte, undo and a repeated key need what was there), it is kept beside the journal for that time. It is checked
against the hash in the sealed row whenever it is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.apart import apart
from toolgate.core.canonical import canonical, sha256
from toolgate.core.clock import SECOND
from toolgate.core.errors import LedgerBroken, NotFound
from toolgate.core.event import Asked, Committed, Event, Noted, Started
from toolgate.core.loops import has_loop
from toolgate.core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from toolgate.storage.port import Backend, Row

ROW_BYTES = 64 * 1024
"""What the body of a row has at most, as UTF-8."""
BEGINNING = 32 * 1024
"""What is left of a longer one: so many bytes for all fields that are cut."""
SHORT = 1024
"""A field of so many bytes is never cut."""
DEEP = 48
DAY = 24 * 3600 * SECOND
_KEEP_CLAIM, _KEEP_EFFECT = 2 * DAY, 30 * DAY
_NEEDED: Mapping[str, frozenset[str]] = {
    # what the ledger itself reads. Grants are a human's, and are checked when they are given.
    "started": frozenset({"change", "undoes", "owner", "request", "rule"}),
    "asked": frozenset({"channels", "rights", "rule"}),
    "granted": frozenset({"args", "paths", "definition", "rights"}),
    "configured": frozenset({"policy"}),
}


class Shortened(NamedTuple):
    text: str
    """The body for the row."""
    whole: str
    bytes: int
    """Of the whole."""
    expires: int
    """How long the whole is kept; 0 if it is not."""


def is_attached(event: Event, text: str) -> bool:
    """Whether the row does not hold all of it: it is too long, or a human was shown what is not to be recorded."""
    return is_long(text) or (type(event) is Asked and bool(event.shown))


def fitted(event: Event, text: str, now: int) -> str | Shortened:
    """What a row can hold of it."""
    return shortened(event, text, now) if is_attached(event, text) else text


def is_long(text: str) -> bool:
    return len(text) > ROW_BYTES // 4 and (len(text) > ROW_BYTES or len(text.encode()) > ROW_BYTES)


def shortened(event: Event, text: str, now: int) -> Shortened:
    """The body with the beginnings of its long fields, and what was there in all."""
    body = _loads(text)
    private = body.pop("shown", None)
    needed = _NEEDED.get(event.kind, frozenset())
    long = {
        name: size
        for name, value in body.items()
        if name not in needed and isinstance(value, str | list | dict) and (size := _size(value)) > SHORT
    }
    cut: dict[str, Any] = {
        "bytes": len(text.encode()),
        "fields": {"shown": _size(private)} if private else {},
        "sha256": sha256(text),
    }
    for name, size in long.items() if _size(body) > ROW_BYTES else ():
        begun = _beginning(body[name], max(BEGINNING // len(long), SHORT))
        if not begun.all:
            body[name], cut["fields"][name] = begun.value, size
    expires = _kept_until(event, now)
    if expires:
        cut["until"] = expires
    return Shortened(canonical(body | {"cut": cut}), text, cut["bytes"], expires)


class _Begun(NamedTuple):
    value: Any
    bytes: int
    all: bool


def _beginning(value: Any, room: int, depth: int = 0) -> _Begun:
    """As much of the value as fits, of the same kind. Looks no further than that."""
    if isinstance(value, str):
        return _first_characters(value, room)
    if not isinstance(value, dict | list):
        size = _size(value)
        return _Begun(value, size, size <= room)
    if depth >= DEEP:
        return _Begun(type(value)(), 2, not value)
    if isinstance(value, dict):
        return _first_entries(value, room - 2, depth + 1)
    return _first_items(value, room - 2, depth + 1)


def _first_entries(value: dict[str, Any], room: int, depth: int) -> _Begun:
    begun: dict[str, Any] = {}
    left = room
    for key, item in value.items():
        if len(key) > left or (left := left - _size(key) - 2) < 0:
            return _Begun(begun, room - left + 2, False)
        part = _beginning(item, left, depth)
        left -= part.bytes
        if left >= 0:
            begun[key] = part.value
        if not part.all:
            return _Begun(begun, room - left + 2, False)
    return _Begun(begun, room - left + 2, True)


def _first_items(value: list[Any], room: int, depth: int) -> _Begun:
    """Items are whole or absent, so that whoever reads one finds all of it."""
    begun: list[Any] = []
    left = room
    for item in value:
        part = _beginning(item, left - 1, depth)
        left -= part.bytes + 1
        if not part.all or left < 0:
            return _Begun(begun, room - left + 2, False)
        begun.append(part.value)
    return _Begun(begun, room - left + 2, True)


def _first_characters(text: str, room: int) -> _Begun:
    if len(text) <= room and (size := _size(text)) <= room:
        return _Begun(text, size, True)
    begun = text[: max(room - 8, 0)]
    while begun and _size(begun) > room - 8:  # a character takes up to six bytes
        begun = begun[: len(begun) // 2]
    return _Begun(begun + "…", _size(begun) + 3, False)


def _size(value: Any) -> int:
    """Bytes as JSON, or very nearly."""
    import orjson  # for what is long only

    return len(orjson.dumps(value))


def _kept_until(event: Event, now: int) -> int:
    match event:
        case Asked():
            return event.expires
        case Started() if event.effectful and not event.change:
            return now + _KEEP_EFFECT  # a tool's own undo, and who finds out after a crash, get the arguments
        case Committed() if event.claim:
            return now + _KEEP_CLAIM
        case Noted():
            return now + _KEEP_EFFECT
    return 0


async def whole_body(backend: Backend, row: Row) -> Mapping[str, Any]:
    """What was recorded, all of it. Raises NotFound where only the beginning is left."""
    body: Mapping[str, Any] = json.loads(row.body)
    cut = body.get("cut")
    if not cut:
        return body
    text = await backend.attachment(row.seq) if cut.get("until") else None
    if text is None:
        raise NotFound(
            f"of event {row.seq} only the beginning is kept: all of it was {cut['bytes']:,} bytes",
            f"its hash is {cut['sha256']}; whoever made the call may still have it",
        )
    whole = await apart(_whole, text, cut["sha256"]) if has_loop() else _whole(text, cut["sha256"])
    if whole is None:
        raise LedgerBroken(
            f"what is kept of event {row.seq} beside the journal is not what was recorded",
            "somebody changed the database; `toolgate ledger verify` checks the rest",
        )
    return whole


def _whole(text: str, digest: str) -> Mapping[str, Any] | None:
    """None where it is not what was recorded."""
    return _loads(text) if sha256(text) == digest else None


def weight(body: str) -> int:
    """Bytes that a row brings into the database, what is kept beside it or for good elsewhere included."""
    said = _loads(body) if '"cut":' in body or '"kept":' in body else {}
    cut, kept = said.get("cut") or {}, said.get("kept")
    return (
        len(body)
        + (cut["bytes"] if cut.get("until") else 0)
        + (kept.get("bytes", 0) if isinstance(kept, dict) else 0)
    )


def _loads(text: str) -> dict[str, Any]:
    fast = sys.modules.get("orjson", json)  # a short command does without it
    try:
        found: dict[str, Any] = fast.loads(text)
    except ValueError:  # deeper than it goes
        found = json.loads(text)
    return found
