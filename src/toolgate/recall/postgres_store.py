"""PostgreSQL store: one table with words (tsvector) and vectors (pgvector), row-level security per scope.

Every statement names its scope, and the transaction says it to the table's policy as well. The vector index is scanned
until enough rows have passed the filters; where it still gives too few, the rows are compared one by one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.recall.engine import Item
from toolgate.recall.postgres_schema import HYBRID_SEARCH, INDEX, SCHEMA, VECTORS
from toolgate.recall.store import (
    COPIES_MOST,
    K1,
    B,
    Candidate,
    Filters,
    Frequencies,
    NewPassage,
    Passage,
    SearchUsage,
    hash_of,
)
from toolgate.storage.tables import Migration, Statement, Tables

COLUMNS = "number, entity_id, content, item_hash, entity_type, at, conversation, place"
COUNTS_S = 30.0
SCANNING = {
    "hnsw.iterative_scan": "strict_order",
    "hnsw.ef_search": "100",
    "hnsw.max_scan_tuples": "2000000",
}
"""The graph is searched until enough rows have passed the filters."""
_LEXEME = re.compile(r"'((?:[^']|'')*)':([\d,A-D]+)")
_ALONE = "SELECT pg_advisory_xact_lock(7597137)"
_WRITING = "SELECT pg_advisory_xact_lock(7597137, hashtext(?))"
"""Of several processes one makes what vectors need."""
_EVERY = Statement("SELECT set_config('toolgate.every_scope', 'yes', true)")


class PostgresStore:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}
        self._lengths: dict[str, float] = {}
        self._dimension = 0
        self._trouble = ""

    async def open(self) -> None:
        await self._tables.migrate("recall", [Migration("", SCHEMA)])

    async def _run(self, scope: str, *statements: Statement) -> list[dict[str, Any]]:
        """The rows of the last one."""
        told = Statement("SELECT set_config('toolgate.scope', ?, true)", (scope,))
        return (await self._tables.transaction([told, *statements]))[-1]

    async def _vectors_ready(self, dimension: int) -> bool:
        if self._dimension == dimension:
            return True
        index = f"idx_tools_knowledge_embedding_{dimension}"
        try:
            if (await self._tables.fetch("SELECT to_regclass(?) AS there", index))[0]["there"] is None:
                steps = (*VECTORS, INDEX.format(dimension), HYBRID_SEARCH)
                await self._tables.transaction([Statement(_ALONE), *map(Statement, steps)])
        except Unavailable as error:
            self._trouble = f"the database has no vectors ({error.message})"
            return False
        self._dimension, self._trouble = dimension, ""
        return True

    async def write(self, items: Sequence[tuple[Item, Sequence[NewPassage]]], model: str) -> None:
        dimension = next((len(p.vector) for _, pieces in items for p in pieces if p.vector is not None), 0)
        vectors = bool(dimension) and await self._vectors_ready(dimension)
        # of two that write the same item, neither would see the other's row when it deletes what was there
        statements = [Statement(_WRITING, (scope,)) for scope in sorted({item.scope for item, _ in items})]
        for item, pieces in items:
            statements.append(Statement("SELECT set_config('toolgate.scope', ?, true)", (item.scope,)))
            statements.append(
                Statement(
                    "DELETE FROM tools_knowledge WHERE scope = ? AND entity_id = ?", (item.scope, item.id)
                )
            )
            statements += [_inserting(item, part, piece, model, vectors) for part, piece in enumerate(pieces)]
        await self._tables.transaction(statements)
        for scope in {item.scope for item, _ in items}:
            self._forget_counts(scope)

    async def remove(self, scope: str, ids: Sequence[str]) -> None:
        sql = "DELETE FROM tools_knowledge WHERE scope = ? AND entity_id = ANY(CAST(? AS text[]))"
        await self._run(scope, Statement(sql, (scope, list(ids))))
        self._forget_counts(scope)

    def _forget_counts(self, scope: str) -> None:
        for key in [key for key in self._counts if key[0] == scope]:
            del self._counts[key]

    async def known_vectors(self, scope: str, hashes: Sequence[str], model: str) -> dict[str, Any]:
        if not self._dimension:
            return {}
        sql = (
            "SELECT DISTINCT ON (content_hash) content_hash, CAST(embedding AS text) AS vector FROM tools_knowledge "
            "WHERE scope = ? AND model = ? AND content_hash = ANY(CAST(? AS text[])) AND embedding IS NOT NULL"
        )
        rows = await self._run(scope, Statement(sql, (scope, model, list(hashes))))
        return {row["content_hash"]: _parsed(row["vector"]) for row in rows}

    def _is_counted(self, scope: str, term: str, now: float) -> bool:
        """That a word is nowhere is never believed twice: another process may have put it."""
        at, count = self._counts.get((scope, term), (0.0, 0))
        return count > 0 and now - at < COUNTS_S

    async def frequencies(self, scope: str, terms: Sequence[str]) -> Frequencies:
        now = time.monotonic()
        wanted = [term for term in terms if not self._is_counted(scope, term, now)]
        held = {term: self._counts[scope, term][1] for term in terms if term not in wanted}
        passages = self._counts.get((scope, ""), (0.0, 0))[1]
        if wanted or not self._is_counted(scope, "", now):
            told = await self._tables.transaction([
                Statement("SELECT set_config('toolgate.scope', ?, true)", (scope,)),
                Statement("SELECT count(*) AS n, coalesce(avg(length), 1) AS length FROM tools_knowledge WHERE scope = ?", (scope,)),
                Statement(
                    "SELECT t.term, (SELECT count(*) FROM tools_knowledge AS k WHERE k.scope = ? AND "
                    "k.content_tsvector @@ plainto_tsquery('toolgate', t.term)) AS n FROM unnest(CAST(? AS text[])) AS t(term)",
                    (scope, wanted),
                ),
            ])  # fmt: skip
            passages = told[1][0]["n"]
            self._counts[scope, ""] = (now, passages)
            self._lengths[scope] = float(told[1][0]["length"])
            held |= {row["term"]: row["n"] for row in told[2]}
            self._counts |= {(scope, row["term"]): (now, row["n"]) for row in told[2]}
        return Frequencies(passages, held)

    async def lexical(
        self, scope: str, terms: Sequence[str], counted: Frequencies, filters: Filters, limit: int, once: bool
    ) -> dict[int, float]:
        """The passages with the rarest words together, and of those the best by BM25."""
        if not terms:
            return {}
        where, values = _where(filters)
        one = "min(p.number)" if once else "p.number"
        rows = await self._run(
            scope,
            Statement(
                "SELECT found.number, CAST(k.content_tsvector AS text) AS words, k.length FROM ("
                f"SELECT {one} AS number, sum(q.weight) / count(DISTINCT p.number) AS weight FROM unnest(CAST(? AS text[]), CAST(? AS float8[])) AS q(term, weight) "
                "JOIN tools_knowledge AS p ON p.content_tsvector @@ plainto_tsquery('toolgate', q.term) "
                f"WHERE p.scope = ?{where} GROUP BY {'p.content_hash' if once else 'p.number'} ORDER BY 2 DESC, 1 LIMIT ?) AS found "
                "JOIN tools_knowledge AS k ON k.number = found.number AND k.scope = ?",
                (list(terms), [counted.weight(term) for term in terms], scope, *values, limit * 2, scope),
            ),
        )
        stems = await self._tables.fetch(
            "SELECT term, tsvector_to_array(to_tsvector('toolgate', term)) AS stems FROM unnest(CAST(? AS text[])) AS t(term)",
            list(terms),
        )
        weights = {stem: counted.weight(row["term"]) for row in stems for stem in row["stems"]}
        average = self._lengths.get(scope, 1.0)
        scores = {row["number"]: _bm25(row["words"], row["length"], weights, average) for row in rows}
        return dict(sorted(scores.items(), key=lambda pair: -pair[1])[:limit])

    async def semantic(
        self,
        scope: str,
        model: str,
        vector: Any,
        filters: Filters,
        limit: int,
        once: bool,
        also: Sequence[int],
    ) -> tuple[dict[int, float], dict[int, float]]:
        if not await self._vectors_ready(len(vector)):
            return {}, {}
        size = len(vector)
        where, values = _where(filters)
        nearest = (
            f"SELECT p.number, 1 - (p.embedding::vector({size}) <=> CAST(CAST(? AS text) AS vector({size}))) AS cosine, p.content_hash "
            f"FROM tools_knowledge AS p WHERE p.scope = ? AND p.model = ? AND p.dimension = {size}{where} "
        )
        by_index = f"ORDER BY p.embedding::vector({size}) <=> CAST(CAST(? AS text) AS vector({size})) LIMIT ?"
        asked = (_written(vector), scope, model, *values)
        rows: list[dict[str, Any]] = []
        if not once:
            rows = await self._run(
                scope, *_set(SCANNING), Statement(nearest + by_index, (*asked, _written(vector), limit))
            )
        if len(rows) < limit:
            # the graph has given up, or there are no more: cheap to know, in an order of no index
            same = "min(number) AS number, max(cosine) AS cosine"
            each = f"SELECT {same} FROM ({nearest}) AS n GROUP BY content_hash " if once else nearest
            rows = await self._run(scope, Statement(f"{each}ORDER BY cosine DESC LIMIT ?", (*asked, limit)))
        near = {row["number"]: row["cosine"] for row in rows}
        rest = [number for number in also if number not in near]
        others = await self.candidates(scope, model, vector, rest)
        return near, {each.passage.number: each.cosine for each in others if each.cosine is not None}

    async def candidates(
        self, scope: str, model: str, vector: Any | None, numbers: Sequence[int]
    ) -> list[Candidate]:
        if not numbers:
            return []
        cosine, values = "NULL", []
        if vector is not None and await self._vectors_ready(len(vector)):
            cosine = "CASE WHEN model = ? AND dimension = ? THEN 1 - (embedding <=> CAST(CAST(? AS text) AS vector)) END"
            values = [model, len(vector), _written(vector)]
        sql = (
            f"SELECT {COLUMNS}, {cosine} AS cosine FROM tools_knowledge "
            "WHERE scope = ? AND number = ANY(CAST(? AS bigint[]))"
        )
        rows = await self._run(scope, Statement(sql, (*values, scope, list(numbers))))
        return [Candidate(_passage(row), row["cosine"]) for row in rows]

    async def copies(self, scope: str, ids: Sequence[str], filters: Filters) -> dict[str, list[str]]:
        where, values = _where(filters)
        sql = (
            "SELECT a.entity_id AS known, c.entity_id AS copy FROM tools_knowledge AS a CROSS JOIN LATERAL ("
            "SELECT p.entity_id FROM tools_knowledge AS p WHERE p.scope = a.scope AND p.content_hash = a.content_hash "
            f"AND p.part = 0 AND p.item_hash = a.item_hash AND p.entity_id <> a.entity_id{where} "
            f"ORDER BY p.number LIMIT {COPIES_MOST}) AS c "
            "WHERE a.scope = ? AND a.part = 0 AND a.entity_id = ANY(CAST(? AS text[]))"
        )
        found: dict[str, list[str]] = {}
        for row in await self._run(scope, Statement(sql, (*values, scope, list(ids)))):
            found.setdefault(row["known"], []).append(row["copy"])
        return found

    async def beside(
        self, scope: str, places: Sequence[tuple[str, int]], reach: int, filters: Filters
    ) -> list[Passage]:
        where, values = _where(filters)
        columns = ", ".join(f"p.{name}" for name in COLUMNS.split(", "))
        sql = (
            f"SELECT DISTINCT {columns} FROM unnest(CAST(? AS text[]), CAST(? AS bigint[])) AS near(name, at_place) "
            "JOIN tools_knowledge AS p ON p.conversation = near.name AND "
            f"p.place BETWEEN near.at_place - {reach} AND near.at_place + {reach} "
            f"WHERE p.scope = ? AND p.conversation <> ''{where}"
        )
        names, at = [name for name, _ in places], [place for _, place in places]
        return [_passage(row) for row in await self._run(scope, Statement(sql, (names, at, scope, *values)))]

    async def speakers(self, scope: str) -> frozenset[str]:
        rows = await self._tables.fetch("SELECT name FROM recall_speakers WHERE scope = ?", scope)
        return frozenset(row["name"] for row in rows)

    async def add_speakers(self, scope: str, names: Sequence[str]) -> None:
        sql = "INSERT INTO recall_speakers (scope, name) SELECT ?, unnest(CAST(? AS text[])) ON CONFLICT DO NOTHING"
        await self._tables.execute(sql, scope, list(names))

    async def lacking(self, model: str, after: int, limit: int) -> list[tuple[int, str, str, str]]:
        sql = (
            "SELECT number, scope, conversation, content FROM tools_knowledge "
            "WHERE number > ? AND model <> ? AND content <> '' ORDER BY number LIMIT ?"
        )
        rows = (await self._tables.transaction([_EVERY, Statement(sql, (after, model, limit))]))[-1]
        return [(row["number"], row["scope"], row["conversation"], row["content"]) for row in rows]

    async def lacking_count(self, model: str) -> int:
        sql = "SELECT count(*) AS n FROM tools_knowledge WHERE model <> ? AND content <> ''"
        return int((await self._tables.transaction([_EVERY, Statement(sql, (model,))]))[-1][0]["n"])

    async def add_vectors(self, model: str, vectors: Mapping[int, Any]) -> None:
        size = len(next(iter(vectors.values())))
        if not await self._vectors_ready(size):
            raise Unavailable(self._trouble, "install pgvector, or CREATE EXTENSION vector as a superuser")
        sql = (
            "UPDATE tools_knowledge SET embedding = CAST(CAST(? AS text) AS vector), model = ?, dimension = ? "
            "WHERE number = ?"
        )
        await self._tables.transaction(
            [_EVERY, *(Statement(sql, (_written(v), model, size, number)) for number, v in vectors.items())]
        )

    async def drop_other_vectors(self, model: str) -> None:
        """None are left: each row has had its vector replaced."""

    async def covered(self, scope: str, model: str) -> tuple[int, int]:
        sql = (
            "SELECT count(*) FILTER (WHERE model = ? AND dimension > 0) AS have, count(*) AS every "
            "FROM tools_knowledge WHERE scope = ? AND content <> ''"
        )
        rows = await self._run(scope, Statement(sql, (model, scope)))
        return rows[0]["have"], rows[0]["every"]

    async def add_usage(self, rows: Sequence[SearchUsage]) -> None:
        sql = (
            "INSERT INTO knowledge_usage_stats (scope, results_count, avg_score, execution_time_ms, degraded, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        await self._tables.transaction([Statement(sql, row) for row in rows])

    async def status(self, model: str) -> dict[str, Any]:
        told = await self._tables.transaction([
            _EVERY,
            Statement("SELECT count(*) AS passages, count(*) FILTER (WHERE part = 0) AS items FROM tools_knowledge"),
            Statement("SELECT model, count(*) AS n FROM tools_knowledge WHERE dimension > 0 GROUP BY model"),
            Statement("SELECT count(*) AS searches FROM knowledge_usage_stats"),
        ])  # fmt: skip
        vectors = {row["model"]: row["n"] for row in told[2]}
        return {
            "database": "postgres",
            **told[1][0],
            **told[3][0],
            "vectors": vectors,
            "database_trouble": self._trouble,
        }

    async def close(self) -> None:
        return None


def _inserting(item: Item, part: int, piece: NewPassage, model: str, vectors: bool) -> Statement:
    with_vector = vectors and piece.vector is not None
    terms = piece.terms
    values = [
        item.scope, item.kind, item.id, part, piece.text, piece.hash, hash_of(item.text), terms, len(terms.split()),
        sorted(set(item.tags)), item.at, item.period, item.conversation, item.place, model if with_vector else "",
    ]  # fmt: skip
    columns = (
        "scope, entity_type, entity_id, part, content, content_hash, item_hash, terms, length, tags, at, period, "
        "conversation, place, model"
    )
    marks = ", ".join("?" * len(values))
    if with_vector:
        columns, marks = f"{columns}, dimension, embedding", f"{marks}, ?, CAST(CAST(? AS text) AS vector)"
        values += [len(piece.vector), _written(piece.vector)]  # type: ignore[arg-type]
    return Statement(f"INSERT INTO tools_knowledge ({columns}) VALUES ({marks})", values)


def _set(settings: Mapping[str, str]) -> list[Statement]:
    return [Statement("SELECT set_config(?, ?, true)", (name, value)) for name, value in settings.items()]


def _where(filters: Filters) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    if filters.kinds:
        parts.append("p.entity_type = ANY(CAST(? AS text[]))")
        values.append(list(filters.kinds))
    if filters.tags:
        parts.append("p.tags @> CAST(? AS text[])")
        values.append(list(filters.tags))
    if filters.since is not None:
        parts.append("p.at >= ?")
        values.append(filters.since)
    if filters.until is not None:
        parts.append("p.at < ?")
        values.append(filters.until)
    if filters.period:
        parts.append("starts_with(p.period, ?)")
        values.append(filters.period)
    return "".join(f" AND {part}" for part in parts), values


def _bm25(words: str, length: int, weights: Mapping[str, float], average: float) -> float:
    """A tsvector says where each stem stands, so it says how often."""
    score = 0.0
    for stem, places in _LEXEME.findall(words):
        weight = weights.get(stem.replace("''", "'"))
        if weight is not None:
            often = places.count(",") + 1
            score += weight * often * (K1 + 1) / (often + K1 * (1 - B + B * length / max(average, 1.0)))
    return score


def _passage(row: Mapping[str, Any]) -> Passage:
    return Passage(*(row[name] for name in COLUMNS.split(", ")))


def _written(vector: Any) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in vector.tolist()) + "]"


def _parsed(text: str) -> Any:
    import numpy as np

    return np.array(text.strip("[]").split(","), np.float32)
