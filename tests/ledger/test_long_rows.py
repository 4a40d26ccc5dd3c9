"""No caller can fill the journal: a row holds the beginning of what is long, its size and its hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest

from gates import KEYS
from toolgate.core.errors import LedgerBroken, NotFound
from toolgate.core.event import EVENTS, Asked, Committed, Event, Granted, Noted, Started
from toolgate.ledger.attachments import ROW_BYTES, whole_body
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Row

LATER = 4_000_000_000_000_000
MEGABYTE = 1 << 20
_ENVELOPE = {one.name for one in fields(Event)}
_OURS = {("started", "change"), ("started", "undoes"), ("started", "owner"), ("started", "request"),
         ("started", "rule"), ("asked", "channels"), ("asked", "rights"), ("asked", "rule"),
         ("granted", "args"), ("granted", "paths"), ("granted", "definition"), ("granted", "rights"),
         ("configured", "policy")}  # fmt: skip
"""What no caller controls, or what is bounded elsewhere."""


def _value(kind: type[Event], name: str) -> Any:
    """Something of the right type that is far too long."""
    annotated = next(one.type for one in fields(kind) if one.name == name)
    text = str(annotated)
    if text == "str":
        return "é\n" * (MEGABYTE // 4)
    if text.startswith(("list", "Sequence")):
        return ["x" * 100 for _ in range(MEGABYTE // 100)]
    if text in ("Json", "Any"):
        return {"a": "x" * MEGABYTE, "b": {"c": ["y" * 10] * 1000}}
    return None


def _made(kind: type[Event], **given: Any) -> Event:
    plain = {"str": "x", "int": 1, "bool": False, "Json": {"reads": [], "writes": []}}
    needed = {
        one.name: plain.get(str(one.type), "x")
        for one in fields(kind)
        if one.name not in _ENVELOPE and str(one.type) in plain
    }
    if "expires" in needed:
        needed["expires"] = LATER
    return kind(persona="ada", tool="t.x", call="c_1", ref="q_1", **(needed | given))


SHAPES = [
    (kind, one.name)
    for kind in EVENTS
    for one in fields(kind)
    if one.name not in _ENVELOPE and (kind.kind, one.name) not in _OURS and _value(kind, one.name) is not None
]


async def _ledger(backend: MemoryBackend | None = None) -> Ledger:
    ledger = Ledger(backend or MemoryBackend(), KEYS, windows=lambda persona, tool, writes: ())
    await ledger.open()
    return ledger


async def _record(ledger: Ledger, *events: Event) -> list[Row]:
    def decide(view: View) -> None:
        view.events.extend(events)

    work = Work(decide)
    await ledger.do(work)
    return work.rows


def test_there_are_many_of_them() -> None:
    assert len(SHAPES) > 30


@pytest.mark.parametrize(("kind", "name"), SHAPES, ids=lambda value: getattr(value, "kind", value))
async def test_a_long_field_of_any_event_leaves_a_short_row(kind: type[Event], name: str) -> None:
    long = _value(kind, name)
    event = _made(kind, **{name: long})
    (row,) = await _record(await _ledger(), event)
    assert len(row.body.encode()) <= ROW_BYTES
    body = json.loads(row.body)
    assert set(body["cut"]["fields"]) - ({"shown"} - {name}) == {name}
    assert body["cut"]["bytes"] > MEGABYTE / 4
    assert body["cut"]["sha256"] == "sha256:" + hashlib.sha256(event.text().encode()).hexdigest()
    if name == "shown":
        assert name not in body, "it is not to be recorded at all"
    elif isinstance(long, str):
        assert long.startswith(body[name].removesuffix("…"))
        assert len(body[name]) > 100
    elif isinstance(long, dict):
        assert long["a"].startswith(body[name]["a"].removesuffix("…"))
    else:
        assert long[: len(body[name])] == body[name] != []


_HOSTILE: dict[str, Any] = {
    "many keys": {f"k{n}": n for n in range(100_000)},
    "long keys": {"k" * 200_000 + str(n): 1 for n in range(3)},
    "a long key first": {"a" * 200_000: 1, "b": 2},
    "many empty lists": [[] for _ in range(100_000)],
    "nested": {"a": {"b": {"c": {"d": "x" * 300_000}}}},
    "control characters": {"x": "\x00\x1f\x7f" * 100_000},
    "quotes": {"x": '"\\' * 100_000},
    "other planes": {"x": "𝔘😀" * 100_000},
    "combining": {"x": "e\u0301" * 100_000},
    "numbers": {"x": list(range(100_000))},
    "floats": {"x": [0.1 + n for n in range(50_000)]},
    "nulls": {"x": [None] * 100_000},
    "its own mark": {"cut": {"bytes": 1, "fields": {}, "sha256": "x", "until": 1}, "x": "y" * 300_000},
    "a list of long texts": {"x": ["y" * 300_000, "z"]},
    "a list of long objects": {"x": [{"y": "z" * 300_000}]},
}


@pytest.mark.parametrize("name", _HOSTILE)
@pytest.mark.parametrize("field", ["args", "data"])
async def test_whatever_the_shape_the_row_is_short_and_the_whole_is_kept(name: str, field: str) -> None:
    ledger, value = await _ledger(), _HOSTILE[name]
    event: Event = _made(Noted, data={"x": value})
    if field == "args":
        event = _made(Asked, args=value if isinstance(value, dict) else {"x": value}, digest="d")
    (row,) = await _record(ledger, event)
    assert len(row.body.encode()) <= ROW_BYTES
    assert type(json.loads(row.body)[field]) is dict
    assert await whole_body(ledger.backend, row) == json.loads(event.text())


async def test_a_deep_value_is_cut_and_not_followed_to_its_end() -> None:
    value: Any = "x" * 200_000
    for _ in range(95):
        value = {"é": [value]}
    (row,) = await _record(await _ledger(), _made(Noted, data=value))
    assert len(row.body.encode()) <= ROW_BYTES


async def test_a_body_of_exactly_the_bound_stays_as_it_is_and_one_byte_more_is_cut() -> None:
    ledger = await _ledger()
    bare = len(_made(Noted, type="t", rationale="").text()) + len('"rationale":"",')
    exact = _made(Noted, type="t", rationale="x" * (ROW_BYTES - bare))
    assert len(exact.text()) == ROW_BYTES
    (row,) = await _record(ledger, exact)
    assert row.body == exact.text()
    (more,) = await _record(ledger, replace(exact, rationale=exact.rationale + "x"))  # type: ignore[attr-defined]
    assert "cut" in json.loads(more.body)


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        (_made(Asked, preview="x" * MEGABYTE), True),
        (_made(Started, args={"x": "y" * MEGABYTE}, effectful=True), True),
        (_made(Started, args={"x": "y" * MEGABYTE}), False),
        (_made(Started, args={"x": "y" * MEGABYTE}, effectful=True, change=[{"path": "a"}]), False),
        (replace(_made(Committed, result="x" * MEGABYTE), claim="key/ada/k"), True),
        (_made(Committed, result="x" * MEGABYTE), False),
        (_made(Noted, rationale="x" * MEGABYTE), True),
        *((_made(kind, **{name: _value(kind, name)}), False) for kind, name in SHAPES if kind.kind == "denied"),
        *((_made(kind, **{name: _value(kind, name)}), False) for kind, name in SHAPES if kind.kind == "rejected"),
    ],
)  # fmt: skip
async def test_only_what_is_needed_again_is_kept_beside_the_journal(event: Event, kept: bool) -> None:
    ledger = await _ledger()
    (row,) = await _record(ledger, event)
    assert ("until" in json.loads(row.body)["cut"]) is kept
    if kept:
        assert (await whole_body(ledger.backend, row)) == json.loads(event.text())
    else:
        with pytest.raises(NotFound, match="only the beginning"):
            await whole_body(ledger.backend, row)


async def test_a_whole_that_was_changed_is_not_believed() -> None:
    backend = MemoryBackend()
    ledger = await _ledger(backend)
    (row,) = await _record(ledger, _made(Asked, preview="x" * MEGABYTE))
    backend.attached[row.seq] = backend.attached[row.seq]._replace(body='{"preview":"harmless"}')
    with pytest.raises(LedgerBroken, match="beside the journal"):
        await whole_body(backend, row)


async def test_a_manifest_stays_whole_because_undo_and_recovery_read_it() -> None:
    change = [{"path": f"project:{n}", "before": None, "after": "sha256:" + "0" * 64} for n in range(2000)]
    (row,) = await _record(await _ledger(), _made(Started, args={"x": "y" * MEGABYTE}, change=change))
    assert json.loads(row.body)["change"] == change


async def test_a_long_grant_is_not_cut_because_it_is_obeyed_to_the_letter() -> None:
    paths = [f"src/{n}/**" for n in range(3000)]
    (row,) = await _record(await _ledger(), _made(Granted, paths=paths, reason="x" * MEGABYTE))
    assert json.loads(row.body)["paths"] == paths
