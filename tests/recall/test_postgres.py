"""What only PostgreSQL has: row-level security that the database itself enforces, and `hybrid_search` in SQL."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from servers.postgres import Server
from toolgate.recall.engine import Item, open_recall
from toolgate.recall.postgres_store import _written
from toolgate.storage.tables import PostgresTables

from .embedders import WordEmbedder

pytestmark = pytest.mark.postgres


async def _filled(dsn: str, directory: Path) -> WordEmbedder:
    tables, embedder = PostgresTables(dsn), WordEmbedder()
    recall = await open_recall(tables, directory, embedder)
    await recall.put([
        Item("a", "ann", "a kitten on the roof", "tool", ("pets",)),
        Item("b", "ann", "invoices of the harbour", "agent"),
        Item("c", "bob", "a kitten in the cellar", "tool", ("pets",)),
    ])  # fmt: skip
    await tables.close()
    return embedder


async def test_the_database_itself_hides_other_scopes(postgres_server: Server, tmp_path: Path) -> None:
    dsn = postgres_server.fresh_dsn()
    await _filled(dsn, tmp_path)
    db = await asyncpg.connect(dsn)
    await db.execute("DROP ROLE IF EXISTS recall_reader")
    await db.execute("CREATE ROLE recall_reader")
    await db.execute("GRANT SELECT, INSERT ON tools_knowledge TO recall_reader")
    await db.execute("SET ROLE recall_reader")
    assert await db.fetchval("SELECT count(*) FROM tools_knowledge") == 0
    await db.execute("SELECT set_config('toolgate.scope', 'ann', false)")
    assert (
        await db.fetchval("SELECT string_agg(entity_id, '' ORDER BY entity_id) FROM tools_knowledge") == "ab"
    )
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await db.execute(
            "INSERT INTO tools_knowledge (scope, entity_type, entity_id, part, content, content_hash, item_hash, terms, length)"
            " VALUES ('bob', '', 'x', 0, '', '', '', '', 0)"
        )
    await db.execute("RESET ROLE")
    await db.execute("DROP OWNED BY recall_reader")
    await db.execute("DROP ROLE recall_reader")
    await db.close()


async def test_hybrid_search_weighs_filters_and_cuts_in_sql(postgres_server: Server, tmp_path: Path) -> None:
    dsn = postgres_server.fresh_dsn()
    embedder = await _filled(dsn, tmp_path)
    vector = _written((await embedder.embed(["feline"]))[0])
    db = await asyncpg.connect(dsn)

    async def asked(more: str = "") -> list[str]:
        sql = f"SELECT * FROM hybrid_search('roofs', CAST($1 AS text)::vector{more}) WHERE entity_id IN ('a', 'b')"
        rows = await db.fetch(sql, vector)
        for row in rows:
            assert row["combined_score"] == pytest.approx(
                0.5 * row["semantic_score"] + 0.5 * row["fts_score"], abs=1e-5
            )
        return [row["entity_id"] for row in rows]

    assert (await asked())[0] == "a"
    assert await asked(", p_entity_type => 'agent', min_similarity => -1") == ["b"]
    assert await asked(", p_topic => 'pets'") == ["a"]
    assert await asked(", min_similarity => 0.99") == []
    before = await db.fetchval("SELECT updated_at FROM tools_knowledge WHERE entity_id = 'a'")
    await db.execute("UPDATE tools_knowledge SET period = 'x' WHERE entity_id = 'a'")
    assert await db.fetchval("SELECT updated_at FROM tools_knowledge WHERE entity_id = 'a'") > before
    await db.close()


async def test_without_pgvector_words_are_searched_and_it_is_said(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "toolgate.recall.postgres_store.VECTORS", ("CREATE EXTENSION IF NOT EXISTS no_such_extension",)
    )
    tables = PostgresTables(postgres_server.fresh_dsn())
    recall = await open_recall(tables, tmp_path, WordEmbedder())
    await recall.put([Item("a", "ann", "a kitten on the roof")])
    answer = await recall.search("roofs", scope="ann")
    assert [hit.id for hit in answer.hits] == ["a"]
    assert "found by words only" in answer.degraded
    assert "no_such_extension" in (await recall.status())["database_trouble"]
    await tables.close()
