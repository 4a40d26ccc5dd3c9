"""Vectors of the SQLite store: blobs in a table, which are the truth, and an index per scope that follows them.

Each process has its own indexes. Before a search one reads what the tables have gained and lost since it looked last;
the numbers of rows are never used twice, so nothing is missed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.recall.sqlite_schema import batches, marks
from toolgate.storage.tables import Statement, Tables

if TYPE_CHECKING:
    from toolgate.recall.vector_index import VectorIndex

ROWS = 4096
"""Vectors that are read at once."""
STORED = "<f2"
"""Half precision: cosines differ in the fourth place, and a million vectors need 0.8 GB."""
QUICK = 4000
"""Vectors that are compared without a thread: about a millisecond."""
COPIES_SKIPPED = 8
"""How much further a graph is searched for texts that are not copies of each other."""
LOG_MOST = 100_000
"""Removals that the log keeps. An index that is further behind is made anew."""


class SqliteVectors:
    def __init__(self, tables: Tables, directory: Path) -> None:
        self._tables = tables
        self._directory = directory
        self._indexes: dict[tuple[int, str], VectorIndex] = {}
        self._turns: dict[tuple[int, str], asyncio.Lock] = {}

    async def known(self, scope: int, hashes: Sequence[str], model: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for some in batches(hashes):
            rows = await self._tables.fetch(
                "SELECT p.hash, v.vector FROM recall_passages AS p JOIN recall_vectors AS v ON v.passage = p.number "
                f"WHERE p.scope = ? AND v.model = ? AND p.hash IN ({marks(some)}) GROUP BY p.hash",
                scope, model, *some,
            )  # fmt: skip
            found |= {row["hash"]: _array([row["vector"]])[0] for row in rows}
        return found

    async def nearest(
        self, scope: int, model: str, vector: Any, count: int, once: bool, also: Sequence[int]
    ) -> tuple[dict[int, float], dict[int, float]]:
        """And the cosines of the others, in the same turn."""
        index = await self._current(scope, model, len(vector))
        if index.exact or not once:
            return await self._looked_up(index, vector, count, once, None, also)
        near, others = await self._looked_up(index, vector, count * COPIES_SKIPPED, also=also)
        return await self._each_once(near), others

    async def _looked_up(
        self, index: VectorIndex, vector: Any, count: int, once: bool = False, among: Sequence[int] | None = None,
        also: Sequence[int] = (),
    ) -> tuple[dict[int, float], dict[int, float]]:  # fmt: skip
        def look_up() -> tuple[dict[int, float], dict[int, float]]:
            near = index.nearest(vector, count, once, among)
            return near, index.cosines(vector, [number for number in also if number not in near])

        return look_up() if index.exact and len(index) < QUICK else await asyncio.to_thread(look_up)

    async def _each_once(self, near: Mapping[int, float]) -> dict[int, float]:
        """The first of each text."""
        hashes: dict[int, str] = {}
        for some in batches(list(near)):
            rows = await self._tables.fetch(
                f"SELECT number, hash FROM recall_passages WHERE number IN ({marks(some)})",
                *some,
            )
            hashes |= {row["number"]: row["hash"] for row in rows}
        first = {hashes[number]: number for number in reversed(list(near)) if number in hashes}
        kept = set(first.values())
        return {number: cosine for number, cosine in near.items() if number in kept}

    def held(
        self, scope: int, model: str, vector: Any, passages: Sequence[int]
    ) -> dict[int, float] | None:  # fmt: skip
        """Cosines, where the vectors are in memory anyway."""
        index = self._indexes.get((scope, model))
        return index.cosines(vector, passages) if index is not None and index.exact else None

    async def among(
        self, scope: int, model: str, vector: Any, condition: str, values: list[Any], count: int, once: bool,
        also: Sequence[int],
    ) -> tuple[dict[int, float], dict[int, float]]:  # fmt: skip
        """The nearest of those that meet a condition, none lost: where few of the nearest do, the condition is asked
        first."""
        index = await self._current(scope, model, len(vector))
        every = f"SELECT p.number FROM recall_passages AS p WHERE p.scope = {int(scope)}{condition}"
        if index.exact:
            numbers = [row["number"] for row in await self._tables.fetch(every, *values)]
            return await self._looked_up(index, vector, count, once, numbers, also)
        near, others = await self._looked_up(index, vector, min(count * 4, ROWS), also=also)
        meeting = await self._meeting(scope, condition, values, near)
        if len(meeting) < count:
            numbers = [row["number"] for row in await self._tables.fetch(every, *values)]
            if len(numbers) > ROWS:
                meeting = await asyncio.to_thread(_filtered, index, vector, set(numbers), count)
            else:
                cosines = await self._stored(scope, model, vector, numbers)
                meeting = dict(sorted(cosines.items(), key=lambda pair: -pair[1]))
        found = await self._each_once(meeting) if once else meeting
        return dict(list(found.items())[:count]), others

    async def _meeting(
        self, scope: int, condition: str, values: list[Any], near: Mapping[int, float]
    ) -> dict[int, float]:
        found: set[int] = set()
        for some in batches(list(near)):
            rows = await self._tables.fetch(
                f"SELECT p.number FROM recall_passages AS p WHERE p.number IN ({marks(some)}) "
                f"AND +p.scope = {int(scope)}{condition}",
                *some, *values,
            )  # fmt: skip
            found |= {row["number"] for row in rows}
        return {number: cosine for number, cosine in near.items() if number in found}

    async def _stored(self, scope: int, model: str, vector: Any, passages: Sequence[int]) -> dict[int, float]:
        found: dict[int, float] = {}
        for some in batches(passages):
            rows = await self._tables.fetch(
                "SELECT passage AS number, vector FROM recall_vectors "
                f"WHERE passage IN ({marks(some)}) AND model = ? AND +scope = ?",
                *some, model, scope,
            )  # fmt: skip
            found |= cosines_of(rows, vector)
        return found

    async def _current(self, scope: int, model: str, dimension: int) -> VectorIndex:
        """The index, up to date. Whoever comes while it is made waits for it."""
        from toolgate.recall.vector_index import VectorIndex

        async with self._turns.setdefault((scope, model), asyncio.Lock()):
            index = self._indexes.get((scope, model))
            if index is None:
                index = VectorIndex(self._path(scope, model), model, dimension)
                await asyncio.to_thread(index.load)
            if not await self._follow(index, scope, model):
                index = VectorIndex(self._path(scope, model), model, dimension)
                await self._follow(index, scope, model)
            self._indexes[scope, model] = index
            if index.worth_saving:
                await asyncio.to_thread(index.save)
            return index

    async def _follow(self, index: VectorIndex, scope: int, model: str) -> bool:
        """Whether it could catch up: the log of removals may have gone beyond it."""
        [log] = await self._tables.fetch(
            "SELECT coalesce((SELECT max(number) FROM recall_removed WHERE scope = ?), 0) AS last, "
            "coalesce((SELECT max(number) FROM recall_vectors WHERE scope = ? AND model = ?), 0) AS newest",
            scope, scope, model,
        )  # fmt: skip
        last = log["last"]
        if last < index.removed_upto or (len(index) and last - LOG_MOST > index.removed_upto):
            return False
        if not len(index):
            index.removed_upto = last  # what is gone was never in it
        while log["newest"] > index.vectors_upto:
            rows = await self._tables.fetch(
                "SELECT number, passage, vector FROM recall_vectors WHERE scope = ? AND model = ? AND number > ? "
                "ORDER BY number LIMIT ?",
                scope, model, index.vectors_upto, ROWS,
            )  # fmt: skip
            if rows:
                await asyncio.to_thread(_add, index, rows)
                index.vectors_upto = rows[-1]["number"]
            if len(rows) < ROWS:
                break
        if last > index.removed_upto:
            gone = await self._tables.fetch(
                "SELECT passage FROM recall_removed WHERE scope = ? AND number > ?", scope, index.removed_upto
            )
            await asyncio.to_thread(index.drop, [row["passage"] for row in gone])
            index.removed_upto = last
        return True

    def purged(self, scope: int) -> None:
        """Files may hold what was removed. A later search makes them again."""
        for path in self._directory.glob(f"vectors-{int(scope)}-*"):
            path.unlink(missing_ok=True)

    def _path(self, scope: int, model: str) -> Path:
        return (
            self._directory / f"vectors-{int(scope)}-{hashlib.sha256(model.encode()).hexdigest()[:12]}.index"
        )

    async def lacking(self, model: str, after: int, limit: int) -> list[tuple[int, str, str, str]]:
        rows = await self._tables.fetch(
            "SELECT p.number, s.scope, p.conversation, p.text FROM recall_passages AS p "
            "JOIN recall_scopes AS s ON s.number = p.scope WHERE p.number > ? AND p.text <> '' AND NOT EXISTS "
            "(SELECT 1 FROM recall_vectors AS v WHERE v.passage = p.number AND v.model = ?) ORDER BY p.number LIMIT ?",
            after, model, limit,
        )  # fmt: skip
        return [(row["number"], row["scope"], row["conversation"], row["text"]) for row in rows]

    async def add(self, model: str, vectors: Mapping[int, Any]) -> None:
        """Of passages that are still there, unless somebody else was first."""
        sql = (
            "INSERT OR IGNORE INTO recall_vectors (passage, scope, model, vector) "
            "SELECT number, scope, ?, ? FROM recall_passages WHERE number = ?"
        )
        await self._tables.transaction(
            [Statement(sql, (model, blob(vector), number)) for number, vector in vectors.items()]
        )

    async def drop_others(self, model: str) -> None:
        await self._tables.execute("DELETE FROM recall_vectors WHERE model <> ?", model)
        for key in [key for key in self._indexes if key[1] != model]:
            del self._indexes[key]
        mine = hashlib.sha256(model.encode()).hexdigest()[:12]
        for path in self._directory.glob("vectors-*.index"):
            if not path.name.endswith(f"-{mine}.index"):
                path.unlink(missing_ok=True)

    async def save(self) -> None:
        """After a last look, because what others have removed meanwhile must not be in a file."""
        for (scope, model), index in self._indexes.items():
            if index.worth_saving_at_last and await self._follow(index, scope, model):
                await asyncio.to_thread(index.save)


def _add(index: VectorIndex, rows: Sequence[Mapping[str, Any]]) -> None:
    index.add([row["passage"] for row in rows], _array([row["vector"] for row in rows]))


def _filtered(index: VectorIndex, vector: Any, allowed: set[int], count: int) -> dict[int, float]:
    """So many of the allowed ones, looked for further and further away."""
    reach = count * 16
    while True:
        near = index.nearest(vector, reach)
        found = {key: cosine for key, cosine in near.items() if key in allowed}
        if len(found) >= count or reach >= len(index):
            return found
        reach *= 4


def cosines_of(rows: Sequence[Mapping[str, Any]], vector: Any) -> dict[int, float]:
    """By the numbers of passages; of rows without a vector there is none."""
    there = [row for row in rows if row["vector"] is not None and len(row["vector"]) == 2 * len(vector)]
    if not there:
        return {}
    cosines = (_array([row["vector"] for row in there]) @ vector).tolist()
    return dict(zip((row["number"] for row in there), cosines, strict=True))


def blob(vector: Any) -> bytes:
    return bytes(vector.astype(STORED).tobytes())


def _array(blobs: Sequence[bytes]) -> Any:
    import numpy as np

    return np.frombuffer(b"".join(blobs), STORED).reshape(len(blobs), -1).astype(np.float32)
