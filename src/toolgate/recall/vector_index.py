"""Vector index of one scope: exact while it is small, an HNSW graph of usearch in a file when it is large.

It is made from the vectors in the database and can be thrown away. A file that is torn, of another model or behind the
database's log of removals is not used. Keys are numbers of passages.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

EXACT_MOST = 16_384
"""Vectors that are compared one by one, which takes about 2 ms."""
SAVED_AFTER = 2000
"""Changes after which the file is written again, or a twentieth of a large index."""
BLOCK = 512
MAGIC = b"TGVEC01\n"
EXPANSION = 128
EXPANSION_ADD = 64
"""Half the time that 128 take to build; of the ten nearest of granite's vectors, .994 are found instead of .997."""


class _Rows(NamedTuple):
    """Vectors in memory. Each change makes others, so that a search in another thread never sees half of one."""

    keys: Any
    matrix: Any
    marks: Any
    """Equal for equal vectors, so that copies are known."""

    def places(self, keys: Sequence[int]) -> Any:
        return np.flatnonzero(np.isin(self.keys, np.asarray(keys, np.int64)))

    def cosines(self, vector: Any) -> Any:
        """In blocks that BLAS does with one thread: its others would wait for each other where the machine is busy."""
        blocks = [self.matrix[at : at + BLOCK] @ vector for at in range(0, len(self.matrix), BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)

    def at(self, places: Any) -> _Rows:
        return _Rows(self.keys[places], self.matrix[places], self.marks[places])


class VectorIndex:
    def __init__(self, path: Path, model: str, dimension: int) -> None:
        self._path = path
        self._model = model
        self._dimension = dimension
        self._rows = _Rows(np.zeros(0, np.int64), np.zeros((0, dimension), np.float32), np.zeros(0, np.int64))
        self._graph: Any = None
        self._turn = Lock()
        """Of the graph: it is not searched while it grows."""
        self._unsaved = 0
        self.vectors_upto = 0
        """The last vector and the last removal of the database that it knows."""
        self.removed_upto = 0

    def __len__(self) -> int:
        return len(self._graph) if self._graph is not None else len(self._rows.keys)

    @property
    def exact(self) -> bool:
        return self._graph is None

    def load(self) -> bool:
        """What the file has, if it is sound."""
        try:
            data = memoryview(self._path.read_bytes())
            size = int.from_bytes(data[8:16], "little")
            header = json.loads(bytes(data[16 : 16 + size]))
            body = data[16 + size :]
            sound = data[:8] == MAGIC and hashlib.sha256(body).hexdigest() == header["sha256"]
        except (OSError, ValueError, KeyError):
            return False
        if not sound or header["model"] != self._model or header["dimension"] != self._dimension:
            return False
        graph = self._new_graph()
        graph.load(bytes(body))
        self._graph = graph
        self.vectors_upto, self.removed_upto = header["vectors"], header["removed"]
        return True

    def _new_graph(self) -> Any:
        from usearch.index import Index

        return Index(
            ndim=self._dimension,
            metric="cos",
            dtype="i8",
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION,
        )

    def add(self, keys: Sequence[int], vectors: Any) -> None:
        new, vectors = np.asarray(keys, np.int64), vectors.astype(np.float32)
        if self._graph is None:
            marks = np.array([hash(row.tobytes()) for row in vectors], np.int64)
            more = zip(self._rows, (new, vectors, marks), strict=True)
            self._rows = _Rows(*(np.concatenate(pair) for pair in more))
            if len(new) and len(self) > EXACT_MOST:
                self._grow_graph()
            return
        with self._turn:
            fresh = ~np.asarray(self._graph.contains(new), bool)
            if fresh.any():
                self._graph.add(new[fresh], vectors[fresh])
        self._unsaved += int(fresh.sum())

    def _grow_graph(self) -> None:
        graph = self._new_graph()
        keys, first = np.unique(self._rows.keys, return_index=True)
        graph.add(keys, self._rows.matrix[first])
        self._graph, self._unsaved = graph, len(keys)
        self._rows = self._rows.at(slice(0))

    def drop(self, keys: Sequence[int]) -> None:
        gone = np.asarray(keys, np.int64)
        if self._graph is None:
            self._rows = self._rows.at(~np.isin(self._rows.keys, gone))
            return
        with self._turn:
            there = gone[np.asarray(self._graph.contains(gone), bool)]
            if len(there):
                self._graph.remove(there)
                self._overwrite(there)
        self._unsaved += len(there)

    def _overwrite(self, gone: Any) -> None:
        """A graph keeps what it removed until something takes its room, also in its file."""
        self._graph.add(gone, np.ones((len(gone), self._dimension), np.float32))
        self._graph.remove(gone)

    def nearest(
        self, vector: Any, count: int, once: bool = False, among: Sequence[int] | None = None
    ) -> dict[int, float]:
        """Keys and cosines, the nearest first. A graph is rough, and knows neither copies nor which ones to look among."""
        rows = self._rows
        if self._graph is not None:
            with self._turn:
                found = self._graph.search(vector, min(count, len(self._graph))) if len(self._graph) else None
            return (
                dict(zip(found.keys.tolist(), (1 - found.distances).tolist(), strict=True)) if found else {}
            )
        if among is not None:
            rows = rows.at(rows.places(among))
        cosines = rows.cosines(vector)
        best = np.arange(len(cosines))
        if count < len(cosines) and not once:
            best = np.argpartition(-cosines, count)[:count]
        best = best[np.argsort(-cosines[best], kind="stable")]
        if once:
            best = best[np.sort(np.unique(rows.marks[best], return_index=True)[1])]
        best = best[:count]
        return dict(zip(rows.keys[best].tolist(), cosines[best].tolist(), strict=True))

    def cosines(self, vector: Any, keys: Sequence[int]) -> dict[int, float]:
        """Of these keys; those of a graph are rough."""
        rows = self._rows
        if self._graph is not None:
            return self._rough(vector, np.asarray(keys, np.int64))
        near = rows.at(rows.places(keys))
        return dict(zip(near.keys.tolist(), near.cosines(vector).tolist(), strict=True))

    def _rough(self, vector: Any, keys: Any) -> dict[int, float]:
        if not len(keys):
            return {}
        with self._turn:
            there = keys[np.asarray(self._graph.contains(keys), bool)]
            rows = np.asarray(self._graph.get(there), np.float32).reshape(len(there), self._dimension)
        cosines = rows @ vector / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)
        return dict(zip(there.tolist(), cosines.tolist(), strict=True))

    @property
    def worth_saving(self) -> bool:
        return self._graph is not None and self._unsaved > max(SAVED_AFTER, len(self._graph) // 20)

    @property
    def worth_saving_at_last(self) -> bool:
        """When nothing follows: making it again takes far longer than writing it."""
        return self._graph is not None and (self._unsaved > SAVED_AFTER or not self._path.exists())

    def save(self) -> None:
        """Whole or not at all; of several processes the last one's file stays, and each catches up from the database."""
        if self._graph is None:
            return
        with self._turn:
            body = bytes(self._graph.save())
        header = json.dumps(
            {"model": self._model, "dimension": self._dimension, "vectors": self.vectors_upto,
             "removed": self.removed_upto, "sha256": hashlib.sha256(body).hexdigest()}
        ).encode()  # fmt: skip
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        with part.open("wb") as file:
            file.write(MAGIC + len(header).to_bytes(8, "little") + header)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
        self._unsaved = 0
