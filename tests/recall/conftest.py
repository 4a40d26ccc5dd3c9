"""One recall engine on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from toolgate.storage.tables import PostgresTables, SqliteTables, Tables

MakeTables = Callable[[], Tables]


@pytest.fixture(params=["sqlite", "postgres"])
async def make_tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeTables]:
    """Makes tables of one database, each as another process would have them."""
    made: list[Tables] = []
    dsn = request.getfixturevalue("postgres_server").fresh_dsn() if request.param == "postgres" else ""

    def make() -> Tables:
        made.append(PostgresTables(dsn) if dsn else SqliteTables(tmp_path / "features.db"))
        return made[-1]

    yield make
    for tables in made:
        await tables.close()
