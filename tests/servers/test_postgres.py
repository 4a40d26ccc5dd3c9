from __future__ import annotations

import asyncpg

from servers.postgres import Server


async def test_a_fresh_database_is_empty_and_another_than_the_last(
    postgres_server: Server, fresh_dsn: str
) -> None:
    other = postgres_server.fresh_dsn()
    connection = await asyncpg.connect(fresh_dsn)
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW listen_addresses") == ""
    finally:
        await connection.close()
    assert other != fresh_dsn
