"""Quality of recall beside plain BM25, vectors alone and grep, on the labelled sets."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from bench.recall_sets import Asked, LabelledSet
from toolgate.recall.engine import Item

Searcher = Callable[[Asked], Awaitable[list[str]]]
"""Ids of ten items, best first."""


class Quality(NamedTuple):
    ndcg10: float
    r1: float
    r5: float
    r10: float
    mrr: float
    all5: float

    def line(self) -> str:
        return (
            f"nDCG@10 {self.ndcg10:.3f}  R@1 {self.r1:.3f}  R@5 {self.r5:.3f}  R@10 {self.r10:.3f}  "
            f"MRR {self.mrr:.3f}  all@5 {self.all5:.3f}"
        )


async def measure(labelled: LabelledSet, search: Searcher) -> Quality:
    rows = [_scores(await search(asked), asked.gold) for asked in labelled.queries]
    return Quality(*(sum(column) / len(rows) for column in zip(*rows, strict=True)))


def _scores(found: Sequence[str], gold: frozenset[str]) -> tuple[float, ...]:
    found = found[:10]
    gain = sum(1 / math.log2(place + 2) for place, each in enumerate(found) if each in gold)
    best = sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))

    def recall(k: int) -> float:
        return len(gold.intersection(found[:k])) / len(gold)

    first = next((1 / (place + 1) for place, each in enumerate(found) if each in gold), 0.0)
    return gain / best, recall(1), recall(5), recall(10), first, float(recall(5) == 1.0)


def plain_bm25(items: Sequence[Item]) -> Searcher:
    """As a library would do it: words in lower case, no stemming, no stop words."""
    texts = [Counter(re.findall(r"\w+", item.text.lower())) for item in items]
    lengths = [sum(words.values()) for words in texts]
    average = sum(lengths) / len(lengths)
    have = Counter(word for words in texts for word in words)

    def score(at: int, asked: Sequence[str]) -> float:
        total = 0.0
        for word in asked:
            often = texts[at].get(word, 0)
            if often:
                weight = math.log(1 + (len(items) - have[word] + 0.5) / (have[word] + 0.5))
                total += weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * lengths[at] / average))
        return total

    async def search(asked: Asked) -> list[str]:
        words = re.findall(r"\w+", asked.query.lower())
        scores = [(score(at, words), item.id) for at, item in enumerate(items)]
        return [id_ for value, id_ in sorted(scores, key=lambda pair: -pair[0])[:10] if value]

    return search


def grep(items: Sequence[Item]) -> Searcher:
    """Lines that have most of the longer words of the question, as somebody with grep would count them."""

    async def search(asked: Asked) -> list[str]:
        words = {word for word in re.findall(r"\w+", asked.query.lower()) if len(word) > 3}
        scores = [(sum(word in item.text.lower() for word in words), item.id) for item in items]
        return [id_ for value, id_ in sorted(scores, key=lambda pair: -pair[0])[:10] if value]

    return search


async def vectors_alone(items: Sequence[Item], embedder: Any) -> Searcher:
    matrix = await embedder.embed([item.text for item in items])

    async def search(asked: Asked) -> list[str]:
        cosines = matrix @ (await embedder.embed([asked.query]))[0]
        return [items[at].id for at in (-cosines).argsort()[:10]]

    return search
