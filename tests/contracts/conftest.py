from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .databases import Database, Memory, Postgres, SqlDatabase, Sqlite
from .ledgers import Opener


def _database(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Database:
    if name == "memory":
        return Memory()
    if name == "sqlite":
        return Sqlite(tmp_path / "ledger.db")
    return Postgres(request.getfixturevalue("postgres_server"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    found = _database(request.param, tmp_path, request)
    yield found
    await found.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def sql_database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlDatabase]:
    found = _database(request.param, tmp_path, request)
    assert isinstance(found, SqlDatabase)
    yield found
    await found.close()


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    """Opens ledgers and closes them in the end, in turn."""
    opener = Opener()
    yield opener
    await opener.close()
