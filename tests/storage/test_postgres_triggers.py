"""What SQLite has no words for: TRUNCATE, and roles that pass ordinary triggers by."""

from __future__ import annotations

import pytest

from contracts.ledgers import KEYS, note, soon, write
from servers.postgres import Server
from toolgate.ledger.ledger import Ledger
from toolgate.storage.postgres import PostgresBackend


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE journal",
        "SET session_replication_role = replica; UPDATE journal SET persona = 'eve'",
        "SET session_replication_role = replica; DELETE FROM journal",
    ],
)
async def test_the_journal_is_append_only_for_replication_and_truncation_too(
    statement: str, postgres_server: Server, fresh_dsn: str
) -> None:
    ledger = Ledger(PostgresBackend(fresh_dsn), KEYS)
    await soon(ledger.open())
    try:
        await write(ledger, note("kept"))
        with pytest.raises(RuntimeError, match="append-only"):
            postgres_server.sql(statement, fresh_dsn)
    finally:
        await soon(ledger.close())
    assert postgres_server.sql("SELECT count(*) FROM journal", fresh_dsn) == "1"
