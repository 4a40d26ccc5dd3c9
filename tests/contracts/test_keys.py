"""A ledger and its key: one is made where nothing is recorded yet, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.core.errors import LedgerBroken

from .databases import Database, Postgres, SqlDatabase, Sqlite
from .ledgers import Opener, note, soon, write

CONFIG = {"version": 1, "default_persona": "ada", "personas": {"ada": {"phase": "observe"}}}


def files(*places: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for place in places for file in place.rglob("*") if file.is_file()}


async def test_a_database_has_begun_once_something_is_recorded(database: Database, opened: Opener) -> None:
    assert not await soon(database.make().begun())
    await write(await opened(database), note("first"))
    assert await soon(database.make().begun())
    await opened.close()
    assert await soon(database.make().begun())


async def test_asking_whether_it_has_begun_leaves_nothing_behind(sql_database: SqlDatabase) -> None:
    assert not await soon(sql_database.make().begun())
    if isinstance(sql_database, Sqlite):
        assert not sql_database.path.exists()
    else:
        assert isinstance(sql_database, Postgres)
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        assert await sql_database.run(tables) == []


async def test_a_ledger_without_its_key_is_refused_and_nothing_is_written(
    sql_database: SqlDatabase, tmp_path: Path, own_state_dir: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    async with toolgate.open(root, CONFIG, sql_database.make()) as gate:
        assert (await gate.call("system.ping")).ok
    (key,) = (own_state_dir / "keys").glob("*.json")
    kept = key.read_bytes()
    key.unlink()
    before = files(root, own_state_dir), await sql_database.dump()
    for _ in range(2):
        with pytest.raises(LedgerBroken, match=f"the key of this ledger is missing: {key}") as caught:
            async with toolgate.open(root, CONFIG, sql_database.make()):
                pass
        assert caught.value.fix.startswith("restore it from a backup")
    assert (files(root, own_state_dir), await sql_database.dump()) == before
    key.write_bytes(kept)
    async with toolgate.open(root, CONFIG, sql_database.make()) as gate:
        assert (await gate.verify()).ok
