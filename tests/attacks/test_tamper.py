"""Whoever can write the database, but has no key, is found out by `verify`, which says where."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from toolgate.core.canonical import canonical
from toolgate.core.errors import InvalidArgs, LedgerBroken
from toolgate.ledger import checkpoint as checkpoints
from toolgate.ledger.keys import Keys
from toolgate.ledger.verify import export, verify_export
from toolgate.storage.port import Row
from toolgate.storage.schema import PROJECTIONS
from toolgate.storage.sqlite import SqliteBackend

from .everything import Tale, Thief, columns

TABLES = ("journal", "head", *PROJECTIONS)


def other_values(value: Any, dice: random.Random) -> Iterator[Any]:
    """The value with one byte changed, in a few places."""
    if isinstance(value, int):
        yield from (value + 1, value - 1, value ^ (1 << dice.randrange(8)))
        return
    for at in {0, len(value) - 1, dice.randrange(len(value) or 1)}:
        if not value:
            yield "x"
        else:
            yield value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
            yield value[:at] + value[at + 1 :]
    if value:
        yield value + " "


async def test_the_untouched_ledger_verifies(tale: Tale, thief: Thief) -> None:
    report = await thief.verify(tale.now, checkpoints=[tale.checkpoint])
    assert report.ok, report
    assert report.checkpoints == 1
    assert all(thief.rows(table) for table in TABLES), "every table must hold something to tamper with"


@pytest.mark.parametrize("table", TABLES)
async def test_any_changed_byte_in_any_column_is_found(table: str, tale: Tale, thief: Thief) -> None:
    dice = random.Random(table)
    missed = []
    rows = thief.rows(table)
    for row in rows if table != "journal" else dice.sample(rows, 16):
        for column in columns(table):
            for value in other_values(row[column], dice):
                if column == columns(table)[0] and table != "head" and _taken(thief, table, value):
                    continue
                _rename(thief, table, row, column, value)
                report = await thief.verify(tale.now)
                if report.ok or report.bad_event is None or not report.fault:
                    missed.append((row[columns(table)[0]], column, row[column], value, report))
                _rename(
                    thief,
                    table,
                    row | {columns(table)[0]: _key(row, table, column, value)},
                    column,
                    row[column],
                )
    assert not missed, missed[:3]
    assert (await thief.verify(tale.now)).ok, "the test must have put everything back"


def _taken(thief: Thief, table: str, value: Any) -> bool:
    return any(row[columns(table)[0]] == value for row in thief.rows(table))


def _key(row: dict[str, Any], table: str, column: str, value: Any) -> Any:
    first = columns(table)[0]
    return value if column == first else row[first]


def _rename(thief: Thief, table: str, row: dict[str, Any], column: str, value: Any) -> None:
    if table == "head":
        thief.db.execute(f"UPDATE head SET {column} = ?", (value,))
    else:
        thief.set(table, row[columns(table)[0]], column, value)


async def test_the_first_changed_event_is_the_one_that_is_named(tale: Tale, thief: Thief) -> None:
    for row in thief.rows():
        thief.set("journal", row["seq"], "body", row["body"].replace('"', "'", 1) + " ")
        report = await thief.verify(tale.now)
        assert report.bad_event == row["seq"], report
        thief.set("journal", row["seq"], "body", row["body"])


@pytest.mark.parametrize("table", TABLES)
async def test_a_removed_row_is_found(table: str, tale: Tale, thief: Thief) -> None:
    for row in thief.rows(table):
        thief.delete(table, row[columns(table)[0]])
        report = await thief.verify(tale.now)
        assert not report.ok, (table, row)
        assert report.bad_event is not None
        if table == "journal":
            assert report.bad_event == row["seq"]
        thief.insert(table, row if table != "head" else row | {"id": 1})


async def test_a_swapped_pair_is_found(tale: Tale, thief: Thief) -> None:
    rows = thief.rows()
    for first, second in itertools.pairwise(rows):
        _put(thief, first | {"seq": second["seq"]}, second | {"seq": first["seq"]})
        report = await thief.verify(tale.now)
        assert report.bad_event == first["seq"], report
        _put(thief, first, second)


def _put(thief: Thief, *rows: dict[str, Any]) -> None:
    for row in rows:
        thief.delete("journal", row["seq"])
        thief.insert("journal", row)


@pytest.mark.parametrize("kept", [1, 10, 30, -1])
async def test_a_cut_tail_is_found_even_if_the_head_is_moved_back(
    kept: int, tale: Tale, thief: Thief
) -> None:
    kept = kept if kept > 0 else len(thief.rows()) + kept
    thief.db.execute("DELETE FROM journal WHERE seq > ?", (kept,))
    report = await thief.verify(tale.now)
    assert report.bad_event == kept + 1, report
    last = thief.rows()[-1]
    for mac in (last["mac"], last["mac"] * 2, thief.rows("head")[0]["mac"]):
        thief.db.execute(
            "UPDATE head SET seq = ?, at = ?, key = ?, hash = ?, mac = ?",
            (last["seq"], last["at"], last["key"], last["hash"], mac),
        )
        report = await thief.verify(tale.now)
        assert report.bad_event == kept, report


async def test_an_empty_head_does_not_hide_the_journal(tale: Tale, thief: Thief) -> None:
    thief.db.execute("DELETE FROM head")
    assert not (await thief.verify(tale.now)).ok


async def test_a_key_that_is_wrong_or_missing_is_found(tale: Tale, thief: Thief) -> None:
    wrong = Keys({1: b"w" * 32, 2: b"w" * 32}, b"s" * 32)
    report = await thief.verify(tale.now, wrong)
    assert (report.bad_event, "seal" in report.fault) == (1, True)
    old = Keys({1: b"k" * 32}, b"s" * 32)
    report = await thief.verify(tale.now, old)
    assert "key version 2" in report.fault, report


async def test_a_rotation_cannot_be_skipped(tale: Tale, thief: Thief) -> None:
    """Rows sealed with the right keys, but the version changes where nobody rotated."""
    from .everything import ROTATED, rechained

    rows = [row for row in thief.rows() if row["kind"] != "rotated"]
    thief.db.execute("DELETE FROM journal")
    for row in rechained(rows, ROTATED):
        thief.insert("journal", row)
    report = await thief.verify(tale.now)
    assert "without a rotation" in report.fault


async def test_a_restored_old_copy_is_found_by_a_checkpoint_and_only_by_it(tale: Tale, tmp_path: Any) -> None:
    old = Thief(tale.early, tmp_path / "old.db")
    assert (await old.verify(tale.now)).ok, "an old copy is whole in itself: that is why checkpoints exist"
    report = await old.verify(tale.now, checkpoints=[tale.checkpoint])
    old.db.close()
    assert report.bad_event == tale.checkpoint.seq
    assert "older copy" in report.fix


async def test_another_history_of_the_same_length_is_found_by_a_checkpoint(tale: Tale, thief: Thief) -> None:
    """Even whoever has the HMAC key cannot rewrite what a checkpoint elsewhere has signed."""
    from .everything import ROTATED, rechained, rehead

    rows = thief.rows()
    rows[1]["body"] = rows[1]["body"].replace('"x":"a"', '"x":"b"')
    thief.db.execute("DELETE FROM journal")
    for row in rechained(rows, ROTATED):
        thief.insert("journal", row)
    await rehead(thief, ROTATED)
    assert (await thief.verify(tale.now)).ok
    report = await thief.verify(tale.now, checkpoints=[tale.checkpoint])
    assert report.bad_event == tale.checkpoint.seq
    assert "checkpoint" in report.fault


async def _exported(tale: Tale) -> list[str]:
    return [line async for line in export(SqliteBackend(tale.path))]


async def test_an_export_and_a_checkpoint_need_no_key(tale: Tale) -> None:
    report = verify_export(await _exported(tale), [tale.checkpoint])
    assert (report.ok, report.keyed, report.checkpoints) == (True, False, 1)


async def test_a_truncated_export_is_found(tale: Tale) -> None:
    lines = await _exported(tale)
    for kept in (0, 1, tale.checkpoint.seq - 1):
        assert verify_export(lines[:kept], [tale.checkpoint]).bad_event == tale.checkpoint.seq
    assert verify_export(lines[1:], []).bad_event == 1
    assert verify_export([*lines[:5], lines[5][:40], *lines[6:]], []).bad_event == 6


async def test_an_edited_export_with_new_hashes_does_not_fit_the_checkpoint(tale: Tale) -> None:
    from .everything import plain_rechained

    rows = [json.loads(line) for line in await _exported(tale)]
    rows[8]["body"] = rows[8]["body"].replace("eve", "ada")
    forged = [canonical(row) for row in plain_rechained(rows)]
    assert verify_export(forged, []).ok, "without a checkpoint a plain chain proves nothing about its author"
    report = verify_export(forged, [tale.checkpoint])
    assert report.bad_event == tale.checkpoint.seq


async def test_every_changed_character_of_an_export_line_is_found(tale: Tale) -> None:
    dice = random.Random(4)
    lines = await _exported(tale)
    for _ in range(300):
        index = dice.randrange(tale.checkpoint.seq)
        line = lines[index]
        at = dice.randrange(len(line))
        changed = line[:at] + chr(ord(line[at]) ^ 1) + line[at + 1 :]
        report = verify_export([*lines[:index], changed, *lines[index + 1 :]], [tale.checkpoint])
        if _same_row(line, changed):
            continue
        assert not report.ok, (line, changed)


def _same_row(line: str, changed: str) -> bool:
    """The seal is not checked without the key; anything else must be."""
    try:
        one, two = Row(**json.loads(line)), Row(**json.loads(changed))
    except (ValueError, TypeError):
        return False
    return one._replace(mac="") == two._replace(mac="")


def test_a_checkpoint_cannot_be_changed(tale: Tale) -> None:
    text = tale.checkpoint.as_json()
    assert checkpoints.read(text) == tale.checkpoint
    fields = json.loads(text)
    for name, value in fields.items():
        other = value + 1 if isinstance(value, int) else chr(ord(value[0]) ^ 1) + value[1:]
        with pytest.raises((LedgerBroken, InvalidArgs), match="checkpoint"):
            checkpoints.read(json.dumps(fields | {name: other}))


def test_a_checkpoint_of_another_signer_is_refused(tale: Tale) -> None:
    stranger = Keys({1: b"k" * 32}, b"x" * 32)
    from toolgate.storage.port import Head

    forged = checkpoints.sign(Head(tale.checkpoint.seq, 0, 1, "f" * 64, ""), "tale", stranger)
    with pytest.raises(LedgerBroken, match="signed by"):
        checkpoints.read(forged.as_json(), tale.checkpoint.public_key)


async def test_time_does_not_run_backwards_even_for_the_holder_of_the_key(tale: Tale, thief: Thief) -> None:
    from .everything import ROTATED, rechained

    rows = thief.rows()
    rows[20]["at"] -= 1_000_000
    thief.db.execute("DELETE FROM journal")
    for row in rechained(rows, ROTATED):
        thief.insert("journal", row)
    report = await thief.verify(tale.now)
    assert report.bad_event == 21
    assert "dated before" in report.fault
