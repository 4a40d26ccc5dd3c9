"""SQLite store: passages in a table, words in an FTS5 index per scope, vectors as blobs and in an index file.

A scope has a full-text table of its own, so that neither results nor word counts of one scope reach another. The
truth is in the database: files of vectors are made from it and may be deleted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolgate.recall.engine import Item
from toolgate.recall.sqlite_schema import SCHEMA, batches, marks, match, where
from toolgate.recall.sqlite_vectors import LOG_MOST, SqliteVectors, blob, cosines_of
from toolgate.recall.store import (
    COPIES_MOST,
    Candidate,
    Filters,
    Frequencies,
    NewPassage,
    Passage,
    SearchUsage,
    hash_of,
)
from toolgate.storage.tables import Migration, Statement, Tables

COLUMNS = "p.number, p.id, p.text, p.content_hash, p.kind, p.at, p.conversation, p.place"
_TRIM = """DELETE FROM recall_removed WHERE scope = ? AND number <=
    (SELECT max(number) FROM recall_removed WHERE scope = ?) - ?"""
LARGE = 2000
COUNTS_S = 300.0
"""How long word counts are used again. That a word is nowhere is never believed twice: another process may have put it."""
GROWN = 8
"""A scope that is an eighth longer than when it was counted is counted again: a word that was rare then may be common."""
COVERED_S = 5.0
"""How long it is believed how many vectors there are, which `degraded` tells."""
COUNTED_MOST = 20_000
"""Occurrences of a word that are counted; how many there are beyond is guessed from where these stand."""
MATCHES_MOST = 20_000
"""Passages that one search compares by words: where common words leave more, the newest."""


class SqliteStore:
    def __init__(self, tables: Tables, directory: Path) -> None:
        self._tables = tables
        self._vectors = SqliteVectors(tables, directory)
        self._scopes: dict[str, int] = {}
        self._counts: dict[tuple[int, str], tuple[float, int]] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._covered: dict[tuple[int | None, str], tuple[float, tuple[int, int]]] = {}

    async def open(self) -> None:
        await self._tables.migrate("recall", [Migration(SCHEMA, "")])

    async def _scope(self, scope: str, make: bool = False) -> int | None:
        if scope in self._scopes:
            return self._scopes[scope]
        found = await self._tables.fetch("SELECT number FROM recall_scopes WHERE scope = ?", scope)
        while not found and make:
            await self._make(scope)
            found = await self._tables.fetch("SELECT number FROM recall_scopes WHERE scope = ?", scope)
        if not found:
            return None
        self._scopes[scope] = found[0]["number"]
        return self._scopes[scope]

    async def _make(self, scope: str) -> None:
        """A number and the full-text table of that number, both or neither. Another may take the number first."""
        (row,) = await self._tables.fetch("SELECT coalesce(max(number), 0) + 1 AS next FROM recall_scopes")
        await self._tables.transaction(
            [
                Statement(
                    f"CREATE VIRTUAL TABLE IF NOT EXISTS {_index(row['next'])} USING fts5(terms, "
                    "content='recall_passages', content_rowid='number', columnsize=1, tokenize='porter unicode61')"
                ),
                Statement(
                    "INSERT OR IGNORE INTO recall_scopes (number, scope) VALUES (?, ?)", (row["next"], scope)
                ),
            ]
        )

    async def write(self, items: Sequence[tuple[Item, Sequence[NewPassage]]], model: str) -> None:
        statements: list[Statement] = []
        for item, pieces in items:
            scope = await self._scope(item.scope, make=True)
            assert scope is not None
            statements += _taking_out(scope, [item.id])
            statements += _putting_in(scope, item, pieces, model)
        await self._tables.transaction(statements)
        for item, _ in items:
            self._forget_counts(self._scopes[item.scope])

    async def remove(self, scope: str, ids: Sequence[str]) -> None:
        number = await self._scope(scope)
        if number is None:
            return
        for some in batches(ids):
            await self._tables.transaction(
                [*_taking_out(number, some), Statement(_TRIM, (number, number, LOG_MOST))]
            )
        self._vectors.purged(number)
        self._forget_counts(number)

    async def known_vectors(self, scope: str, hashes: Sequence[str], model: str) -> dict[str, Any]:
        number = await self._scope(scope)
        return await self._vectors.known(number, hashes, model) if number is not None else {}

    def _forget_counts(self, scope: int) -> None:
        """In a large scope one more text changes little."""
        for key in [key for key, (_, (_, every)) in self._covered.items() if every < LARGE]:
            del self._covered[key]
        if self._counts.get((scope, ""), (0.0, 0))[1] < LARGE:
            for key in [key for key in self._counts if key[0] == scope]:
                del self._counts[key]

    async def _forget_if_grown(self, scope: int) -> None:
        """Whoever has written to it, this process or another."""
        if scope not in self._spans:
            return
        first, last = self._spans[scope]
        (row,) = await self._tables.fetch(f"SELECT max(id) AS last FROM {_index(scope)}_docsize")
        if (row["last"] or 0) - last > (last - first) // GROWN:
            del self._spans[scope]
            for key in [key for key in self._counts if key[0] == scope]:
                del self._counts[key]

    async def frequencies(self, scope: str, terms: Sequence[str]) -> Frequencies:
        number = await self._scope(scope)
        if number is None:
            return Frequencies(0, {})
        name, now = _index(number), time.monotonic()
        await self._forget_if_grown(number)
        held: dict[str, int] = {}
        for term in ("", *terms):
            at, count = self._counts.get((number, term), (0.0, 0))
            if count > 0 and now - at < COUNTS_S:
                held[term] = count
        span = self._spans.get(number)
        missing = [term for term in ("", *terms) if term not in held or (not term and span is None)]
        if missing:
            every = f"SELECT ? AS term, count(*) AS n, min(id) AS first, max(id) AS last FROM {name}_docsize"
            one = f"SELECT ? AS term, count(*) AS n, 0 AS first, max(rowid) AS last FROM (SELECT rowid FROM {name} WHERE {name} MATCH ? LIMIT {COUNTED_MOST})"
            sql = " UNION ALL ".join(one if term else every for term in missing)
            values = [value for term in missing for value in ((term, match([term])) if term else (term,))]
            rows = await self._tables.fetch(sql, *values)
            if missing[0] == "":
                span = self._spans[number] = (rows[0]["first"] or 0, rows[0]["last"] or 0)
            assert span is not None
            held |= {row["term"]: _guessed(row["n"], row["last"], *span) for row in rows}
            if len(self._counts) > 100_000:
                self._counts.clear()
            self._counts |= {(number, term): (now, held[term]) for term in missing}
        return Frequencies(held.pop(""), held)

    async def lexical(
        self, scope: str, terms: Sequence[str], counted: Frequencies, filters: Filters, limit: int, once: bool
    ) -> dict[int, float]:
        number = await self._scope(scope)
        if number is None or not terms:
            return {}
        name = _index(number)
        condition, values = where(filters)
        # the words are looked up first: a planner without statistics would read the whole scope instead
        join = f"CROSS JOIN recall_passages AS p ON p.number = {name}.rowid AND +p.scope = {number}"
        rare = sum(counted.of[term] for term in terms) <= MATCHES_MOST
        sql = (
            f"SELECT {name}.rowid AS number, -rank AS score{', p.hash' if once else ''} FROM {name} "
            f"{join if condition or once else ''} WHERE {name} MATCH ?{condition} "
        )
        if rare and not once:
            sql += "ORDER BY rank LIMIT ?"
        else:
            newest = f"{sql} ORDER BY {name}.rowid DESC LIMIT {MATCHES_MOST}"
            sql = f"SELECT min(number) AS number, max(score) AS score FROM ({newest}) GROUP BY {'hash' if once else 'number'} ORDER BY 2 DESC LIMIT ?"
        rows = await self._tables.fetch(sql, match(terms), *values, limit)
        return {row["number"]: row["score"] for row in rows}

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
        number = await self._scope(scope)
        if number is None:
            return {}, {}
        condition, values = where(filters)
        if condition:
            return await self._vectors.among(number, model, vector, condition, values, limit, once, also)
        return await self._vectors.nearest(number, model, vector, limit, once, also)

    async def candidates(
        self, scope: str, model: str, vector: Any | None, numbers: Sequence[int]
    ) -> list[Candidate]:
        number = await self._scope(scope)
        if number is None:
            return []
        held = self._vectors.held(number, model, vector, numbers) if vector is not None else {}
        columns, join = COLUMNS, ""
        values: tuple[str, ...] = ()
        if held is None:
            columns, values = f"{COLUMNS}, v.vector", (model,)
            join = "LEFT JOIN recall_vectors AS v ON v.passage = p.number AND v.model = ?"
        found: list[Candidate] = []
        for some in batches(numbers):
            rows = await self._tables.fetch(
                f"SELECT {columns} FROM json_each(?) AS wanted CROSS JOIN recall_passages AS p ON p.number = wanted.value "
                f"{join} WHERE +p.scope = ?",
                json.dumps(some), *values, number,
            )  # fmt: skip
            known = held if held is not None else cosines_of(rows, vector)
            found += [Candidate(_passage(row), known.get(row["number"])) for row in rows]
        return found

    async def copies(self, scope: str, ids: Sequence[str], filters: Filters) -> dict[str, list[str]]:
        number = await self._scope(scope)
        condition, values = where(filters)
        one = (
            "SELECT * FROM (SELECT a.id AS known, p.id AS copy FROM recall_passages AS a CROSS JOIN recall_passages AS p "
            "ON p.scope = a.scope AND p.hash = a.hash AND p.part = 0 AND p.content_hash = a.content_hash AND p.id <> a.id "
            f"WHERE a.scope = ? AND a.id = ? AND a.part = 0{condition} LIMIT {COPIES_MOST})"
        )
        found: dict[str, list[str]] = {}
        for some in batches(ids, 50):
            rows = await self._tables.fetch(
                " UNION ALL ".join([one] * len(some)), *(v for id_ in some for v in (number, id_, *values))
            )
            for row in rows:
                found.setdefault(row["known"], []).append(row["copy"])
        return found

    async def beside(
        self, scope: str, places: Sequence[tuple[str, int]], reach: int, filters: Filters
    ) -> list[Passage]:
        number = await self._scope(scope)
        condition, values = where(filters)
        found: dict[int, Passage] = {}
        for some in batches(places, 50):
            near = " OR ".join("(conversation = ? AND place BETWEEN ? AND ?)" for _ in some)
            bounds = [v for name, place in some for v in (name, place - reach, place + reach)]
            rows = await self._tables.fetch(
                f"SELECT {COLUMNS} FROM recall_passages AS p WHERE scope = ? AND conversation <> '' AND ({near}){condition}",
                number, *bounds, *values,
            )  # fmt: skip
            found |= {row["number"]: _passage(row) for row in rows}
        return list(found.values())

    async def speakers(self, scope: str) -> frozenset[str]:
        number = await self._scope(scope)
        rows = await self._tables.fetch("SELECT name FROM recall_speakers WHERE scope = ?", number)
        return frozenset(row["name"] for row in rows)

    async def add_speakers(self, scope: str, names: Sequence[str]) -> None:
        number = await self._scope(scope, make=True)
        add = "INSERT OR IGNORE INTO recall_speakers (scope, name) VALUES (?, ?)"
        await self._tables.transaction([Statement(add, (number, name)) for name in names])

    async def lacking(self, model: str, after: int, limit: int) -> list[tuple[int, str, str, str]]:
        return await self._vectors.lacking(model, after, limit)

    async def lacking_count(self, model: str) -> int:
        rows = await self._tables.fetch(
            "SELECT (SELECT count(*) FROM recall_passages WHERE text <> '') - "
            "(SELECT count(*) FROM recall_vectors WHERE model = ?) AS n",
            model,
        )
        return max(0, int(rows[0]["n"]))

    async def add_vectors(self, model: str, vectors: Mapping[int, Any]) -> None:
        await self._vectors.add(model, vectors)
        self._covered.clear()

    async def drop_other_vectors(self, model: str) -> None:
        await self._vectors.drop_others(model)
        self._covered.clear()

    async def covered(self, scope: str, model: str) -> tuple[int, int]:
        number = await self._scope(scope)
        at, known = self._covered.get((number, model), (0.0, (0, 0)))
        if time.monotonic() - at < COVERED_S:
            return known
        rows = await self._tables.fetch(
            "SELECT (SELECT count(*) FROM recall_vectors WHERE scope = ? AND model = ?) AS have, "
            "(SELECT count(*) FROM recall_passages WHERE scope = ?) - "
            "(SELECT count(*) FROM recall_passages WHERE scope = ? AND hash = ?) AS every",
            number, model, number, number, hash_of(""),
        )  # fmt: skip
        known = (rows[0]["have"], rows[0]["every"])
        self._covered[number, model] = (time.monotonic(), known)
        return known

    async def add_usage(self, rows: Sequence[SearchUsage]) -> None:
        sql = "INSERT INTO recall_usage (scope, results, average_score, milliseconds, degraded, at) VALUES (?, ?, ?, ?, ?, ?)"
        await self._tables.transaction([Statement(sql, (*row[:-1], row.at.timestamp())) for row in rows])

    async def status(self, model: str) -> dict[str, Any]:
        rows = await self._tables.fetch(
            "SELECT count(*) AS passages, count(DISTINCT scope || ' ' || id) AS items FROM recall_passages"
        )
        vectors = await self._tables.fetch("SELECT model, count(*) AS n FROM recall_vectors GROUP BY model")
        usage = await self._tables.fetch("SELECT count(*) AS searches FROM recall_usage")
        return {
            "database": "sqlite",
            **rows[0],
            **usage[0],
            "vectors": {row["model"]: row["n"] for row in vectors},
        }

    async def close(self) -> None:
        await self._vectors.save()


def _index(scope: int) -> str:
    return f"recall_text_{int(scope)}"


def _taking_out(scope: int, ids: Sequence[str]) -> list[Statement]:
    name, which = _index(scope), f"scope = ? AND id IN ({marks(ids)})"
    return [
        Statement(
            f"INSERT INTO {name} ({name}, rowid, terms) SELECT 'delete', number, terms FROM recall_passages WHERE {which}",
            (scope, *ids),
        ),
        Statement(f"DELETE FROM recall_passages WHERE {which}", (scope, *ids)),
    ]


def _putting_in(scope: int, item: Item, pieces: Sequence[NewPassage], model: str) -> Iterator[Statement]:
    name = _index(scope)
    at = item.at.timestamp() if item.at else None
    tags, whole = json.dumps(sorted(set(item.tags))), hash_of(item.text)
    for part, piece in enumerate(pieces):
        yield Statement(
            "INSERT INTO recall_passages (scope, id, part, text, terms, hash, content_hash, kind, tags, at, period,"
            " conversation, place) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (scope, item.id, part, piece.text, piece.terms, piece.hash, whole, item.kind, tags, at,
             item.period, item.conversation, item.place),
        )  # fmt: skip
        yield Statement(f"INSERT INTO {name} (rowid, terms) VALUES (last_insert_rowid(), ?)", (piece.terms,))
        if piece.vector is not None:
            yield Statement(
                "INSERT INTO recall_vectors (passage, scope, model, vector) "
                "SELECT number, scope, ?, ? FROM recall_passages WHERE scope = ? AND id = ? AND part = ?",
                (model, blob(piece.vector), scope, item.id, part),
            )


def _guessed(count: int, last: int | None, first: int, end: int) -> int:
    """How often a word occurs, if counting stopped at its so-manieth passage."""
    if count < COUNTED_MOST or not last:
        return count
    return max(count, count * (end - first + 1) // max(last - first + 1, 1))


def _passage(row: Mapping[str, Any]) -> Passage:
    at = datetime.fromtimestamp(row["at"], UTC) if row["at"] is not None else None
    return Passage(
        row["number"],
        row["id"],
        row["text"],
        row["content_hash"],
        row["kind"],
        at,
        row["conversation"],
        row["place"],
    )
