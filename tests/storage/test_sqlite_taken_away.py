"""Whoever takes the database away under an open gate is noticed before the next effect: nothing runs unrecorded."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import toolgate
from gates import KEYS, Witness, policy, toolset
from toolgate.core.errors import Unavailable
from toolgate.core.event import Noted
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.sqlite import SqliteBackend
from toolgate.storage.tables import SqliteTables, Statement

Way = Callable[[Path, Path], None]


def _beside(db: Path, end: str) -> Path:
    return db.with_name(db.name + end)


def unlink(db: Path, old: Path) -> None:
    db.unlink()


def unlink_all(db: Path, old: Path) -> None:
    for end in ("", "-wal", "-shm"):
        _beside(db, end).unlink()


def rename(db: Path, old: Path) -> None:
    db.rename(db.with_name("elsewhere.db"))


def rename_all(db: Path, old: Path) -> None:
    for end in ("", "-wal", "-shm"):
        _beside(db, end).rename(_beside(db.with_name("elsewhere.db"), end))


def replace_by_older(db: Path, old: Path) -> None:
    shutil.copy(old, db.with_name("new"))
    db.with_name("new").replace(db)


def overwrite_by_older(db: Path, old: Path) -> None:
    shutil.copy(old, db)
    _beside(db, "-wal").write_bytes(b"")


def replace_by_a_twin(db: Path, old: Path) -> None:
    shutil.copy(db, db.with_name("new"))
    db.with_name("new").replace(db)


def replace_by_empty(db: Path, old: Path) -> None:
    db.with_name("new").touch()
    db.with_name("new").replace(db)


def replace_by_a_directory(db: Path, old: Path) -> None:
    db.unlink()
    db.mkdir()


def truncate(db: Path, old: Path) -> None:
    os.truncate(db, 0)


def truncate_to_a_page(db: Path, old: Path) -> None:
    os.truncate(db, 2048)


def move_the_directory(db: Path, old: Path) -> None:
    db.parent.rename(db.parent.with_name("moved"))


def replace_the_directory(db: Path, old: Path) -> None:
    move_the_directory(db, old)
    db.parent.mkdir()
    shutil.copy(old, db)


def remove_the_directory(db: Path, old: Path) -> None:
    shutil.rmtree(db.parent)


def remove_the_log(db: Path, old: Path) -> None:
    _beside(db, "-wal").unlink()


def replace_the_log(db: Path, old: Path) -> None:
    remove_the_log(db, old)
    _beside(db, "-wal").touch()


def truncate_the_log(db: Path, old: Path) -> None:
    os.truncate(_beside(db, "-wal"), 0)


def remove_the_index(db: Path, old: Path) -> None:
    _beside(db, "-shm").unlink()


WAYS = [
    unlink, unlink_all, rename, rename_all, replace_by_older, overwrite_by_older, replace_by_a_twin,
    replace_by_empty, replace_by_a_directory, truncate, truncate_to_a_page, move_the_directory,
    replace_the_directory, remove_the_directory, remove_the_log, replace_the_log, truncate_the_log,
    remove_the_index,
]  # fmt: skip


def _copy(db: Path, to: Path) -> None:
    source, target = sqlite3.connect(db), sqlite3.connect(to)
    source.backup(target)
    target.close()
    source.close()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_nothing_runs_once_the_database_was_taken_away(tmp_path: Path, way: Way) -> None:
    db, old = tmp_path / "state" / "ledger.db", tmp_path / "old.db"
    witness = Witness()
    async with toolgate.open(
        tmp_path, policy(), database=str(db), tools=toolset(witness, tmp_path), keys=KEYS
    ) as gate:
        assert (await gate.call("t.act", {"x": "before"})).ok
        _copy(db, old)
        for _ in range(30):
            assert (await gate.call("t.act", {"x": "more"})).ok
        ran = len(witness.ran)
        way(db, old)
        results = [await gate.call("t.act", {"x": "after"}) for _ in range(3)]
        results.append(await gate.call("t.look", {"x": "after"}))
        assert [one.error.code.value for one in results if one.error] == ["unavailable"] * 4
        assert len(witness.ran) == ran
        told = results[0].error
        assert told is not None
        assert "ledger.db" in told.message
        assert "put" in told.fix


async def test_a_symbolic_link_that_is_switched_is_noticed(tmp_path: Path) -> None:
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "here"
    first.mkdir()
    second.mkdir()
    link.symlink_to(first)
    witness = Witness()
    async with toolgate.open(
        tmp_path, policy(), database=str(link / "ledger.db"), tools=toolset(witness, tmp_path), keys=KEYS
    ) as gate:
        assert (await gate.call("t.act", {"x": "before"})).ok
        _copy(first / "ledger.db", second / "ledger.db")
        link.unlink()
        link.symlink_to(second)
        result = await gate.call("t.act", {"x": "after"})
        assert result.error is not None
        assert result.error.code == "unavailable"
        assert witness.arguments == ["before"]


async def test_a_database_that_is_put_back_goes_on(tmp_path: Path) -> None:
    db = tmp_path / "ledger.db"
    witness = Witness()
    async with toolgate.open(
        tmp_path, policy(), database=str(db), tools=toolset(witness, tmp_path), keys=KEYS
    ) as gate:
        assert (await gate.call("t.act", {"x": "1"})).ok
        db.rename(tmp_path / "aside.db")
        assert not (await gate.call("t.act", {"x": "2"})).ok
        (tmp_path / "aside.db").rename(db)
        assert (await gate.call("t.act", {"x": "3"})).ok
        assert (await gate.verify()).ok
    assert witness.arguments == ["1", "3"]


def _note(view: View) -> None:
    view.emit(Noted(type="observation", rationale="x" * 3000))


async def test_neither_folding_the_log_nor_other_processes_nor_compacting_is_taken_for_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    ours, theirs = Ledger(SqliteBackend(path), KEYS), Ledger(SqliteBackend(path), KEYS)
    await ours.open()
    await theirs.open()
    for _ in range(700):
        await ours.do(Work(_note, durable=False))
    await theirs.do(Work(_note))
    hand = sqlite3.connect(path)
    hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    await ours.do(Work(_note))
    hand.execute("CREATE TABLE filling (x)")
    hand.execute("INSERT INTO filling VALUES (zeroblob(300000))")
    hand.commit()
    await ours.do(Work(_note))
    hand.execute("DROP TABLE filling")
    hand.execute("VACUUM")
    hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    await theirs.do(Work(_note))
    await ours.do(Work(_note))
    hand.close()
    await theirs.close()
    await ours.do(Work(_note))
    await ours.close()


CUT = (overwrite_by_older, truncate, truncate_to_a_page, truncate_the_log)
"""What leaves the same files at the path."""


@pytest.mark.parametrize("way", [way for way in WAYS if way not in CUT], ids=lambda way: way.__name__)
async def test_features_write_nothing_once_their_tables_were_taken_away(tmp_path: Path, way: Way) -> None:
    db, old = tmp_path / "state" / "features.db", tmp_path / "old.db"
    tables = SqliteTables(db)
    await tables.execute("CREATE TABLE kept (text TEXT)")
    await tables.execute("INSERT INTO kept VALUES ('before')")
    _copy(db, old)
    way(db, old)
    for work in (
        tables.execute("INSERT INTO kept VALUES ('after')"),
        tables.transaction([Statement("INSERT INTO kept VALUES ('after')")]),
        tables.fetch("SELECT * FROM kept"),
    ):
        with pytest.raises(Unavailable, match="taken away"):
            await work
    await tables.close()
