"""Every way PostgreSQL can say no becomes one of our errors, with what to do about it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from contracts.ledgers import KEYS, note, soon, write
from servers.postgres import Server
from toolgate.core.errors import CallError, SetupError, Unavailable
from toolgate.ledger.ledger import Ledger
from toolgate.storage.faults import from_postgres
from toolgate.storage.postgres import PostgresBackend
from toolgate.storage.postgres_connect import ERRORS, place_of


async def _open(dsn: str) -> Ledger:
    ledger = Ledger(PostgresBackend(dsn), KEYS)
    await soon(ledger.open())
    return ledger


async def _refusal(dsn: str) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        await _open(dsn)
    assert caught.value.fix
    return caught.value


def _as(role: str, dsn: str) -> str:
    return dsn.replace("postgres@", f"{role}@")


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    error = await _refusal(f"postgresql://postgres@/x?host={tmp_path}")
    assert "cannot be reached" in error.message
    error = await _refusal("postgresql://postgres:secret@127.0.0.1:1/x")
    assert "cannot be reached" in error.message
    assert "secret" not in f"{error.message} {error.fix}"


async def test_a_database_that_is_not_there(postgres_server: Server) -> None:
    assert "no such database" in (await _refusal(postgres_server.dsn_of("nowhere"))).message


async def test_a_user_that_is_not_let_in(fresh_dsn: str) -> None:
    assert "does not let this user in" in (await _refusal(_as("stranger", fresh_dsn))).message


async def test_a_user_that_may_not_create_tables(postgres_server: Server, fresh_dsn: str) -> None:
    postgres_server.sql("CREATE ROLE guest LOGIN")
    assert "may not do that" in (await _refusal(_as("guest", fresh_dsn))).message


async def test_no_connection_left(postgres_server: Server, fresh_dsn: str) -> None:
    postgres_server.sql("CREATE ROLE few LOGIN CONNECTION LIMIT 1")
    postgres_server.sql("GRANT ALL ON SCHEMA public TO few", fresh_dsn)
    assert "no connection left" in (await _refusal(_as("few", fresh_dsn))).message


async def test_a_database_that_is_read_only(postgres_server: Server, fresh_dsn: str) -> None:
    name = fresh_dsn.partition("?")[0].rpartition("/")[2]
    postgres_server.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "read-only" in (await _refusal(fresh_dsn)).message


async def test_a_table_that_is_gone(postgres_server: Server, fresh_dsn: str) -> None:
    ledger = await _open(fresh_dsn)
    try:
        await write(ledger, note("kept"))
        postgres_server.sql("DROP TABLE head", fresh_dsn)
        with pytest.raises(Unavailable, match="table of the ledger is missing") as caught:
            await write(ledger, note("lost"))
        assert "restore" in caught.value.fix
    finally:
        await soon(ledger.close())


async def test_an_address_that_cannot_be_read() -> None:
    with pytest.raises((SetupError, Unavailable)) as caught:
        await _open("postgresql://postgres@host:port/x")
    assert caught.value.fix


@pytest.mark.parametrize(
    ("state", "says"), [("53100", "disk"), ("40001", "same time"), ("57P03", "starting up")]
)
def test_states_that_are_hard_to_bring_about_are_translated_too(state: str, says: str) -> None:
    error = asyncpg.PostgresError.new({"C": state, "M": "server's words", "S": "ERROR"})
    ours = from_postgres(error, "database x")
    assert says in ours.message
    assert "server's words" in ours.message
    assert ours.fix


def test_no_error_of_the_driver_gets_past_the_seam() -> None:
    found = [c for c in vars(asyncpg.exceptions).values() if inspect.isclass(c) and issubclass(c, Exception)]
    assert len(found) > 200
    strays = [
        c
        for c in found
        if not issubclass(c, (*ERRORS, Warning)) and not issubclass(c, asyncpg.PostgresLogMessage)
    ]
    assert not strays
    for kind in found:
        if issubclass(kind, ERRORS):
            ours = from_postgres(kind("words"), "database x")
            assert isinstance(ours, CallError)
            assert ours.fix


def test_a_place_never_tells_the_password() -> None:
    assert place_of("postgresql://me:secret@db.example:5433/journal") == "database journal at db.example"
    assert "secret" not in place_of("postgresql://me:secret@[bad/journal")


def test_without_the_driver_it_says_what_to_install() -> None:
    code = """
import sys
sys.modules["asyncpg"] = None
import toolgate
from toolgate.core.errors import SetupError
try:
    import toolgate.storage.postgres
except SetupError as error:
    print(error.fix)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "pip install 'toolgate[postgres]'", done.stderr
