"""Engine of recall: cuts items into passages, has them embedded and stored, and ranks what both arms of a search find."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from toolgate.core.errors import InvalidArgs, TooLarge, ToolgateError
from toolgate.recall import query as queries
from toolgate.recall.engine import Embedder, Found, Hit, Item, Progress
from toolgate.recall.query import Query
from toolgate.recall.ranking import REACH, WEIGHTS, Arms, Scored, Weights, fuse, rank
from toolgate.recall.store import (
    COPIES_MOST,
    Filters,
    Frequencies,
    NewPassage,
    Passage,
    SearchUsage,
    Store,
    hash_of,
)
from toolgate.recall.text import clean, passages, speaker, terms, without_names

TEXT_MOST = 4_000_000
"""Characters of one item."""
QUERY_MOST = 20_000
TERMS_MOST = 40
"""Words of one query that are looked up: the rarest."""
BATCH = 64
"""Items that are embedded and written together."""
DEPTH = 100
"""Candidates of each arm; more where filters and copies leave too few."""
DEEPEST = 100_000
READ = 100
"""Of `DEPTH` candidates from each arm those whose texts are read, the best by both arms together; half of them suffice
where nothing in the query and nobody's neighbours can change that order."""
USAGE_BATCH = 100
POSTINGS_MOST = 2500
"""Occurrences of words that one query looks through; four times as many, if that is a second word."""
NEAR = 20
"""Hits whose neighbours are looked for."""
SPEAKERS_S = 5.0
"""How long it is believed who speaks in a scope."""
IN_LOOP = 300
"""Candidates that are ranked without a thread: a few milliseconds."""
NO_MODEL = "no embedding model: found by words only; see `toolgate models status`"


class Engine:
    def __init__(self, store: Store, embedder: Embedder | None, weights: Weights = WEIGHTS) -> None:
        self.weights = weights
        self._store = store
        self._embedder = embedder
        self._asked: OrderedDict[str, Any] = OrderedDict()
        self._speaking: dict[str, tuple[float, frozenset[str]]] = {}
        self._trouble = ""
        self._usage: list[SearchUsage] = []

    @property
    def _model(self) -> str:
        return self._embedder.model if self._embedder is not None else ""

    async def put(self, items: Sequence[Item]) -> None:
        for item in items:
            _check(item)
        for at in range(0, len(items), BATCH):
            # an id that comes twice is what it was given last
            some = list({(item.scope, item.id): item for item in items[at : at + BATCH]}.values())
            await self._put(some)

    async def _put(self, items: list[Item]) -> None:
        items = [_cleaned(item) for item in items]
        known = await self._learn_speakers(items)
        texts = [passages(item.text) for item in items]
        hashes = [[hash_of(text) for text in some] for some in texts]
        vectors: dict[tuple[str, str], Any] = {}
        if self._embedder is not None:
            vectors = await self._vectors(items, texts, hashes, known)
        await self._store.write(
            [
                (item, [
                    NewPassage(text, " ".join(terms(text)), mark, vectors.get((item.scope, mark)))
                    for text, mark in zip(some, marks, strict=True)
                ])
                for item, some, marks in zip(items, texts, hashes, strict=True)
            ],
            self._model,
        )  # fmt: skip

    async def _learn_speakers(self, items: Sequence[Item]) -> dict[str, frozenset[str]]:
        known: dict[str, frozenset[str]] = {}
        ordered = sorted(items, key=lambda item: item.scope)
        for scope, some in groupby(ordered, key=lambda item: item.scope):
            talking = [item for item in some if item.conversation]
            known[scope] = await self._store.speakers(scope) if talking else frozenset()
            new = {speaker(item.text) for item in talking} - known[scope] - {""}
            if new:
                await self._store.add_speakers(scope, sorted(new))
                known[scope] |= new
                self._speaking.pop(scope, None)
        return known

    async def _speakers(self, scope: str) -> frozenset[str]:
        at, names = self._speaking.get(scope, (0.0, frozenset()))
        if not at or time.monotonic() - at > SPEAKERS_S:
            names = await self._store.speakers(scope)
            self._speaking[scope] = (time.monotonic(), names)
        return names

    async def _vectors(
        self, items: Sequence[Item], texts: Sequence[Sequence[str]], hashes: Sequence[Sequence[str]],
        known: dict[str, frozenset[str]],
    ) -> dict[tuple[str, str], Any]:  # fmt: skip
        """By scope and hash. What the scope has already is not made again; nothing is taken from another scope."""
        wanted: dict[tuple[str, str], str] = {}
        for item, some, marks in zip(items, texts, hashes, strict=True):
            for text, mark in zip(some, marks, strict=True):
                wanted[item.scope, mark] = _meant(text, item, known)
        found: dict[tuple[str, str], Any] = {}
        for scope in {item.scope for item in items}:
            marks = [mark for where, mark in wanted if where == scope]
            have = await self._store.known_vectors(scope, marks, self._model)
            found |= {(scope, mark): vector for mark, vector in have.items()}
        missing = {key: text for key, text in wanted.items() if key not in found and text}
        made = await self._embed(list(missing.values()))
        return found if made is None else found | dict(zip(missing, made, strict=True))

    async def _embed(self, texts: list[str]) -> Any | None:
        """None where the model fails: then words have to do, and `degraded` says why."""
        if self._embedder is None or not texts:
            return None
        try:
            made = await self._embedder.embed(texts)
        except (ToolgateError, OSError, ValueError) as error:
            self._trouble = f"the embedding model fails ({error}): found by words only"
            return None
        self._trouble = ""
        return made

    async def remove(self, scope: str, ids: Sequence[str]) -> None:
        await self._store.remove(scope, list(dict.fromkeys(ids)))

    async def search(
        self, query: str, *, scope: str, limit: int = 10, kinds: Sequence[str] = (), tags: Sequence[str] = (),
        since: datetime | None = None, until: datetime | None = None, period: str = "", neighbours: bool = False,
        min_similarity: float = 0.0, ids: Container[str] | None = None,
    ) -> Found:  # fmt: skip
        if not scope:
            raise InvalidArgs("a search without a scope", "name the scope whose items are searched")
        limit, begun = max(1, limit), time.perf_counter()
        asked = queries.parse(clean(query)[:QUERY_MOST])
        filters = Filters(tuple(kinds), tuple(tags), _utc(since), _utc(until), period)
        talking = await self._speakers(scope)
        asked = queries.naming(asked, talking)
        vector, degraded = await self._query_vector(asked, scope, talking)
        counted = await self._store.frequencies(scope, asked.terms[: TERMS_MOST * 5])
        rarest = _rarest(asked.terms, counted)
        depth, once = max(DEPTH, limit * 3), False
        while True:
            scored, full = await self._ranked(
                asked, rarest, scope, vector, counted, filters, depth, neighbours, once
            )
            hits = _hits(scored, limit, neighbours, min_similarity, ids)
            worse = bool(scored) and scored[-1].score < min_similarity  # as is whatever lies deeper
            if len(hits) >= limit or worse or not full or depth >= DEEPEST:
                break
            # copies have crowded out the others: from now on each text once, unless only some of its items are wanted
            depth, once = depth * 4, ids is None
        if once:
            copies = await self._store.copies(scope, [hit.id for hit in hits], filters)
            hits = [hit._replace(copies=tuple(copies.get(hit.id, ()))) for hit in hits]
        await self._count(scope, hits, degraded, begun)
        return Found(hits, degraded)

    async def _count(self, scope: str, hits: Sequence[Hit], degraded: str, begun: float) -> None:
        """Statistics are written now and then, because a write waits for the disk."""
        average = sum(hit.score for hit in hits) / len(hits) if hits else 0.0
        took = (time.perf_counter() - begun) * 1000
        self._usage.append(SearchUsage(scope, len(hits), average, took, bool(degraded), datetime.now(UTC)))
        if len(self._usage) >= USAGE_BATCH:
            await self._write_usage()

    async def _write_usage(self) -> None:
        rows, self._usage = self._usage, []
        if rows:
            await self._store.add_usage(rows)

    async def _ranked(
        self, asked: Query, words: Sequence[str], scope: str, vector: Any, counted: Frequencies, filters: Filters, depth: int,
        neighbours: bool, once: bool,
    ) -> tuple[list[Scored], bool]:  # fmt: skip
        """What both arms find, ranked, and whether there might be more."""
        lexical = await self._store.lexical(scope, words, counted, filters, depth, once)
        near: dict[int, float] = {}
        others: dict[int, float] = {}
        if vector is not None:
            near, others = await self._store.semantic(
                scope, self._model, vector, filters, depth, once, list(lexical)
            )
        semantic = near | others
        arms = Arms(lexical, semantic, counted, getattr(self._embedder, "noise", 0.0))
        base = fuse(asked, lexical | semantic, arms, self.weights)
        settled = not (neighbours or _may_boost(asked) or await self._speakers(scope))
        most = depth * READ // DEPTH // (2 if settled else 1)
        best = sorted(base, key=lambda number: -base[number])[:most]
        full = len(lexical) >= depth or len(near) >= depth or len(best) < len(base)
        read = await self._store.candidates(scope, self._model, vector, best)
        found = [each.passage for each in read]
        semantic |= {each.passage.number: each.cosine for each in read if each.cosine is not None}
        beside: list[Passage] = []
        if neighbours:
            leading = (await self._in_order(asked, found, (), arms))[:NEAR]
            places = [
                (each.passage.conversation, each.passage.place)
                for each in leading
                if each.passage.conversation and each.passage.place is not None
            ]
            beside = await self._store.beside(scope, places, REACH, filters) if places else []
        return await self._in_order(asked, found, beside, arms), full

    async def _in_order(
        self, asked: Query, found: Sequence[Passage], beside: Sequence[Passage], arms: Arms
    ) -> list[Scored]:
        if len(found) <= IN_LOOP:
            return rank(asked, found, beside, arms, self.weights)
        return await asyncio.to_thread(rank, asked, found, beside, arms, self.weights)

    async def _query_vector(self, asked: Query, scope: str, known: frozenset[str]) -> tuple[Any | None, str]:
        if self._embedder is None:
            return None, NO_MODEL
        text = without_names(asked.text, known) or asked.text
        if not text.strip():
            return None, ""
        if text not in self._asked:
            made = await self._embed([text])
            if made is None:
                return None, self._trouble
            self._asked[text] = made[0]
            while len(self._asked) > 256:
                self._asked.popitem(last=False)
        have, every = await self._store.covered(scope, self._model)
        degraded = ""
        if have < every:
            degraded = f"{every - have} of {every} passages have no vector of {self._model}: found by words only; `toolgate models status` says more"
        return self._asked[text], degraded

    async def reembed(self, progress: Progress | None = None) -> int:
        """In the order of their numbers, so that whoever comes after a crash goes on where it ended."""
        if self._embedder is None:
            return 0
        made = after = 0
        known: dict[str, frozenset[str]] = {}
        while rows := await self._store.lacking(self._model, after, BATCH * 2):
            for scope in {row[1] for row in rows} - known.keys():
                known[scope] = await self._store.speakers(scope)
            texts = [_spoken(text, known[scope]) if talk else text for _, scope, talk, text in rows]
            vectors = await self._embedder.embed(texts)
            await self._store.add_vectors(
                self._model, {row[0]: vector for row, vector in zip(rows, vectors, strict=True)}
            )
            made, after = made + len(rows), rows[-1][0]
            if progress is not None:
                told = progress(made, made + await self._store.lacking_count(self._model))
                if told is not None:
                    await told
        await self._store.drop_other_vectors(self._model)
        return made

    async def status(self) -> dict[str, Any]:
        await self._write_usage()
        return {"model": self._model, "trouble": self._trouble, **await self._store.status(self._model)}

    async def close(self) -> None:
        await self._write_usage()
        await self._store.close()


def _check(item: Item) -> None:
    if not item.id or not item.scope:
        raise InvalidArgs(f"an item with id {item.id!r} in scope {item.scope!r}", "give it an id and a scope")
    if len(item.text) > TEXT_MOST:
        raise TooLarge(
            f"the text of {item.id} has {len(item.text):,} characters", f"give at most {TEXT_MOST:,}"
        )


def _cleaned(item: Item) -> Item:
    return item._replace(
        id=clean(item.id), scope=clean(item.scope), text=clean(item.text), kind=clean(item.kind),
        tags=tuple(map(clean, item.tags)), at=_utc(item.at), period=clean(item.period),
        conversation=clean(item.conversation),
    )  # fmt: skip


def _meant(text: str, item: Item, known: dict[str, frozenset[str]]) -> str:
    """What is embedded: in a conversation, without the names of those who talk."""
    return _spoken(text, known[item.scope]) if item.conversation else text


def _spoken(text: str, names: frozenset[str]) -> str:
    return without_names(text, names) or text


def _utc(at: datetime | None) -> datetime | None:
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _may_boost(asked: Query) -> bool:
    return bool(asked.phrases or asked.names or asked.numbers or asked.periods or asked.asks_when)


def _rarest(words: Sequence[str], counted: Frequencies) -> tuple[str, ...]:
    """Words that occur, at most so many. In a large scope a common word tells little and costs most, so it is looked up
    only where rare ones have not led to enough."""
    there = [word for word in words if counted.of.get(word)]
    there.sort(key=lambda word: counted.of[word])
    kept: list[str] = []
    reached = 0
    for word in there[:TERMS_MOST]:
        most = POSTINGS_MOST if len(kept) >= 2 else POSTINGS_MOST * 4
        if reached >= DEPTH and reached + counted.of[word] > most:
            break
        kept.append(word)
        reached += counted.of[word]
    return tuple(kept)


def _hits(
    scored: Iterable[Scored], limit: int, neighbours: bool, least: float, ids: Container[str] | None
) -> list[Hit]:
    """Each text once: the first is listed, and names its copies."""
    found: dict[str, tuple[Scored, list[str]]] = {}
    for each in scored:
        if each.score < least or (ids is not None and each.passage.id not in ids):
            continue
        if each.neighbour_of and not neighbours:
            continue
        if each.passage.content_hash in found:
            found[each.passage.content_hash][1].append(each.passage.id)
        elif len(found) < limit:
            found[each.passage.content_hash] = (each, [])
    return [
        Hit(each.passage.id, round(each.score, 6), each.semantic, each.lexical, each.boosts, each.neighbour_of,
            tuple(copies[:COPIES_MOST]), each.passage.text)
        for each, copies in found.values()
    ]  # fmt: skip
