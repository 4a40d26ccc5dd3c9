"""Whatever is changed behind the ledger's back, in whichever database, `verify` finds and names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gates import KEYS
from toolgate.ledger import checkpoint as checkpoints
from toolgate.ledger.keys import Keys
from toolgate.ledger.verify import Report, export, verify, verify_export

from .databases import TABLES, Database
from .ledgers import TOLD, Opener, note, tell, write

COLUMNS = [(table, column) for table, columns in TABLES.items() for column in columns]


async def _check(database: Database, keys: Keys = KEYS, **more: Any) -> Report:
    """By a backend nobody has opened: what an auditor has."""
    return await verify(database.make(), keys, **more)


def _other(value: Any) -> Any:
    """The value with its last byte changed."""
    if isinstance(value, int):
        return value ^ 1
    return value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x"


@pytest.fixture
async def told(database: Database, opened: Opener) -> Database:
    await tell(await opened(database))
    assert (await _check(database)).ok
    assert all((await database.dump()).values()), "every table must hold something to tamper with"
    return database


@pytest.mark.sample(1, over="database")
@pytest.mark.parametrize(("table", "column"), COLUMNS)
async def test_a_changed_byte_is_found_in_every_column(table: str, column: str, told: Database) -> None:
    at = TABLES[table].index(column)
    for row in await told.rows(table):
        changed = (*row[:at], _other(row[at]), *row[at + 1 :])
        await told.replace(table, row[0])
        taken = [old for old in await told.rows(table) if old[0] == changed[0]]
        for old in taken:  # it takes the place of another row: then that one is gone
            await told.replace(table, old[0])
        await told.replace(table, None, changed)
        report = await _check(told)
        assert report.fault, (row, changed)
        assert report.bad_event is not None
        await told.replace(table, changed[0], row, *taken)
    assert (await _check(told)).ok, "the test must have put everything back"


@pytest.mark.parametrize("table", TABLES)
async def test_a_removed_row_is_found(table: str, told: Database) -> None:
    for row in await told.rows(table):
        await told.replace(table, row[0])
        report = await _check(told)
        assert report.fault, row
        if table == "journal":
            assert report.bad_event == row[0]
        await told.replace(table, None, row)
    assert (await _check(told)).ok


async def test_a_swapped_pair_is_found(told: Database) -> None:
    for first, second in pairwise(await told.rows("journal")):
        await told.replace("journal", first[0])
        await told.replace("journal", second[0], (first[0], *second[1:]), (second[0], *first[1:]))
        assert (await _check(told)).bad_event == first[0]
        await told.replace("journal", first[0])
        await told.replace("journal", second[0], first, second)
    assert (await _check(told)).ok


async def test_a_cut_tail_is_found_even_with_a_head_that_fits(told: Database) -> None:
    rows, head = await told.rows("journal"), (await told.rows("head"))[0]
    await told.replace("journal", rows[-1][0])
    assert (await _check(told)).bad_event == TOLD
    last = rows[-2]
    await told.replace("head", head[0], (last[0], last[1], last[9], last[12], *head[4:]))
    report = await _check(told)
    assert report.bad_event == TOLD - 1
    assert "not what was sealed" in report.fault


async def test_a_forged_approval_is_found(told: Database) -> None:
    row = next(row for row in await told.rows("questions") if row[2] == "approved")
    await told.replace("questions", row[0], row, ("q_forged", *row[1:]))
    report = await _check(told)
    assert "q_forged" in report.fault
    assert report.bad_event is not None


async def test_another_key_is_noticed_at_the_first_event(told: Database) -> None:
    report = await _check(told, Keys({1: b"x" * 32}, b"y" * 32))
    assert report.bad_event == 1


async def test_an_export_and_a_checkpoint_are_verified_without_any_secret(told: Database) -> None:
    backend = told.make()
    async with backend.snapshot() as snapshot:
        signed = checkpoints.sign(await snapshot.head(), "project", KEYS)
    lines = [line async for line in export(backend)]
    kept = checkpoints.read(signed.as_json(), KEYS.public)
    report = verify_export(lines, [kept])
    assert report.ok, report
    assert (report.events, report.checkpoints, report.keyed) == (TOLD, 1, False)
    assert verify_export(lines[:-1], [kept]).fault
    assert (
        verify_export([*lines[:4], lines[4].replace("holiday", "holidaz"), *lines[5:]], [kept]).bad_event == 5
    )


async def test_an_old_copy_is_found_by_a_checkpoint_kept_elsewhere(
    database: Database, opened: Opener
) -> None:
    ledger = await opened(database)
    await tell(ledger)
    old = await database.dump()
    await write(ledger, note("the part that somebody wants forgotten"))
    signed = checkpoints.sign(await ledger.backend.head(), "project", KEYS)
    assert (await _check(database, checkpoints=[signed])).ok
    await opened.close()
    await database.restore(old)
    assert (await _check(database)).ok, "without the checkpoint nothing shows"
    report = await _check(database, checkpoints=[signed])
    assert report.bad_event == TOLD + 1
    assert "older copy" in report.fix
