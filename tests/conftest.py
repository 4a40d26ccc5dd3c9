from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.postgres import Server, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One real PostgreSQL for the whole run. Where it cannot start, the tests fail: nothing is skipped."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_dsn(postgres_server: Server) -> str:
    return postgres_server.dsn


@pytest.fixture
def fresh_dsn(postgres_server: Server) -> str:
    """An empty database of its own."""
    return postgres_server.fresh_dsn()
