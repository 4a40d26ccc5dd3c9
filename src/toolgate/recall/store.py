"""Store port: what the recall engine asks of a database. It ranks nothing; every question names its scope."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from toolgate.recall.engine import Item

K1, B = 1.2, 0.75
"""Of BM25, the same in both databases; FTS5 has them built in."""


COPIES_MOST = 1000
"""Equal texts that a hit names."""


class Passage(NamedTuple):
    """A piece of an item, as it is stored; short items have one."""

    number: int
    id: str
    text: str
    content_hash: str
    """Of the whole item, so that copies are known."""
    kind: str
    at: datetime | None
    conversation: str
    place: int | None


class Candidate(NamedTuple):
    """A passage that an arm of a search found, and its cosine with the query; None where it has no vector."""

    passage: Passage
    cosine: float | None = None


class NewPassage(NamedTuple):
    """A passage that is to be stored."""

    text: str
    terms: str
    hash: str
    vector: Any | None = None


class Filters(NamedTuple):
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    period: str = ""


class SearchUsage(NamedTuple):
    """One search, as statistics keep it: not what was asked."""

    scope: str
    results: int
    average_score: float
    milliseconds: float
    degraded: bool
    at: datetime


class Frequencies(NamedTuple):
    """How many passages a scope has, and in how many of them each word occurs."""

    passages: int
    of: Mapping[str, int]

    def weight(self, term: str) -> float:
        """As FTS5 counts it: rare words weigh more."""
        have = min(self.of.get(term, 0), self.passages)  # they are counted at different times
        return max(math.log((self.passages - have + 0.5) / (have + 0.5)), 1e-6)

    def share_of_one(self, terms: Sequence[str]) -> float:
        """Which part of the query's weight a BM25 score of 1 is; all of it is 1. Words that occur nowhere count against
        it; the weights are smoothed for that, because in a small scope every word is in half of the passages."""
        there = [term for term in terms if self.of.get(term)]
        most = sum(map(self.weight, there)) * (K1 + 1)
        every = sum(map(self._smooth, terms))
        return sum(map(self._smooth, there)) / every / most if most and every else 0.0

    def _smooth(self, term: str) -> float:
        have = min(self.of.get(term, 0), self.passages)
        return math.log(1 + (self.passages - have + 0.5) / (have + 0.5))


class Store(Protocol):
    async def open(self) -> None: ...

    async def write(self, items: Sequence[tuple[Item, Sequence[NewPassage]]], model: str) -> None:
        """Replace what these items had; all of them or none."""
        ...

    async def remove(self, scope: str, ids: Sequence[str]) -> None: ...

    async def known_vectors(self, scope: str, hashes: Sequence[str], model: str) -> dict[str, Any]:
        """Vectors that the scope has already, by the hash of their text."""
        ...

    async def frequencies(self, scope: str, terms: Sequence[str]) -> Frequencies: ...

    async def lexical(
        self, scope: str, terms: Sequence[str], counted: Frequencies, filters: Filters, limit: int, once: bool
    ) -> dict[int, float]:
        """BM25 of the best passages with any of the words; of equal texts one, if each is wanted `once`."""
        ...

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
        """Cosines of the nearest passages, and of these others; both may be rough. Of equal texts one is found, if each
        is wanted `once`."""
        ...

    async def candidates(
        self, scope: str, model: str, vector: Any | None, numbers: Sequence[int]
    ) -> list[Candidate]:
        """These passages with their exact cosines, read together."""
        ...

    async def copies(self, scope: str, ids: Sequence[str], filters: Filters) -> dict[str, list[str]]:
        """Other items with the whole text of each, at most `COPIES_MOST`."""
        ...

    async def beside(
        self, scope: str, places: Sequence[tuple[str, int]], reach: int, filters: Filters
    ) -> list[Passage]:
        """The passages of items at most so far from these places of conversations."""
        ...

    async def speakers(self, scope: str) -> frozenset[str]: ...

    async def add_speakers(self, scope: str, names: Sequence[str]) -> None: ...

    async def lacking(self, model: str, after: int, limit: int) -> list[tuple[int, str, str, str]]:
        """Passages without a vector of this model, beyond this number: number, scope, conversation, text."""
        ...

    async def lacking_count(self, model: str) -> int: ...

    async def add_vectors(self, model: str, vectors: Mapping[int, Any]) -> None: ...

    async def drop_other_vectors(self, model: str) -> None: ...

    async def covered(self, scope: str, model: str) -> tuple[int, int]:
        """How many passages of the scope have a vector of this model, and how many there are."""
        ...

    async def add_usage(self, rows: Sequence[SearchUsage]) -> None: ...

    async def status(self, model: str) -> dict[str, Any]: ...

    async def close(self) -> None: ...


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
