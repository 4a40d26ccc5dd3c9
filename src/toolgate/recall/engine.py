"""Recall engine: puts texts into scopes and finds them again, by words and by meaning.

It fuses two arms, a lexical index and vectors, into one score and says for each hit what it is made of. Without an
embedder, or where vectors are missing, it says so in `degraded` and goes on with words. It never looks into another
scope: every statement names one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolgate.storage.tables import Tables

if TYPE_CHECKING:
    from toolgate.recall.store import Store

Progress = Callable[[int, int], Awaitable[None] | None]
"""Told how many of how many are done."""
NO_BOOSTS: Mapping[str, float] = MappingProxyType({})


class Item(NamedTuple):
    """What is indexed. An id belongs to its scope; a conversation and a place in it make neighbours."""

    id: str
    scope: str
    text: str
    kind: str = ""
    tags: tuple[str, ...] = ()
    at: datetime | None = None
    """In UTC."""
    period: str = ""
    conversation: str = ""
    place: int | None = None


class Hit(NamedTuple):
    """What was found, and why. Scores are never stretched: the best of bad ones stays low."""

    id: str
    score: float
    semantic: float | None
    """The cosine of its best passage; None where it has no vector of the present model."""
    lexical: float | None
    """How much of the query's weight in words its best passage has, from 0 to 1; None where it has none."""
    boosts: Mapping[str, float] = NO_BOOSTS
    """What else was added or taken away, by reason."""
    neighbour_of: str = ""
    """The hit beside which it stands in a conversation, if that is why it is here."""
    copies: tuple[str, ...] = ()
    """Other items with the very same text, which are not listed again."""
    passage: str = ""
    """The piece of the text that counted."""


class Found(NamedTuple):
    hits: list[Hit]
    degraded: str
    """Empty, or why this was found by words only, or partly so."""


class Embedder(Protocol):
    """Makes vectors of texts. `model` names provider, model and version; vectors of another one are not compared."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> Any:
        """An array of float32, one row of length 1 per text."""
        ...


class Recall(Protocol):
    async def put(self, items: Sequence[Item]) -> None:
        """Add them, or replace those with the same scope and id. Words are found when this returns; vectors are
        made in the same call if there is an embedder."""
        ...

    async def remove(self, scope: str, ids: Sequence[str]) -> None:
        """Everywhere: words, vectors, files."""
        ...

    async def search(
        self, query: str, *, scope: str, limit: int = 10, kinds: Sequence[str] = (), tags: Sequence[str] = (),
        since: datetime | None = None, until: datetime | None = None, period: str = "", neighbours: bool = False,
        min_similarity: float = 0.0, ids: Container[str] | None = None,
    ) -> Found:  # fmt: skip
        """Best first. A kind must be one of `kinds`; every one of `tags` must be there; `since` and `until` bound
        `at`, the latter exclusively; `period` is a prefix. Hits below `min_similarity` are left out. With
        `neighbours`, what stands beside a hit in its conversation may be a hit too."""
        ...

    async def reembed(self, progress: Progress | None = None) -> int:
        """Make the vectors that the present model lacks, and drop those of others; how many were made. It may be
        interrupted and called again; search goes on meanwhile."""
        ...

    async def status(self) -> dict[str, Any]: ...

    async def close(self) -> None: ...


async def open_recall(tables: Tables, directory: Path, embedder: Embedder | None) -> Recall:
    """On the tables' own kind of database. Files of indexes are kept in `directory`; they can be deleted any time."""
    from toolgate.recall.searching import Engine
    from toolgate.storage.tables import PostgresTables

    store: Store
    if isinstance(tables, PostgresTables):
        from toolgate.recall.postgres_store import PostgresStore

        store = PostgresStore(tables)
    else:
        from toolgate.recall.sqlite_store import SqliteStore

        store = SqliteStore(tables, directory)
    await store.open()
    return Engine(store, embedder)
