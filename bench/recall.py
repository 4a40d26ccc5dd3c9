"""Recall: quality on the labelled sets beside BM25, vectors alone and grep, and how fast a model embeds."""

from __future__ import annotations

import time
from pathlib import Path

from bench.measure import Line
from bench.recall_quality import Quality, Searcher, grep, measure, plain_bm25, vectors_alone
from bench.recall_sets import Asked, LabelledSet, conversations, documents
from bench.run import Run
from toolgate.recall.embedding import LocalEmbedder, local_embedder
from toolgate.recall.engine import Recall, open_recall
from toolgate.storage.tables import SqliteTables

GAIN = 0.05


async def recall(run: Run) -> list[Line]:
    embedder = local_embedder("granite", Path("models"))
    lines = [await _speed(embedder, run)]
    for make in (conversations, documents):
        lines += await _quality(make("reporting"), embedder, run)
    return lines


async def _speed(embedder: LocalEmbedder, run: Run) -> Line:
    run.tell("embedding short texts")
    texts = [item.text for item in conversations("tuning").items[:300]]
    embedder.embed_now(texts[:20])
    begun, spent = time.perf_counter(), time.process_time()
    embedder.embed_now(texts)
    wall, spent = time.perf_counter() - begun, time.process_time() - spent
    rate = len(texts) / wall
    return Line(
        what="granite, turns of a conversation", ours=f"{rate:.0f} texts/s",
        how=f"{len(texts) / spent:.0f} per second of processor", bar="≥ 100 texts/s", holds=rate >= 100,
    )  # fmt: skip


async def _quality(labelled: LabelledSet, embedder: LocalEmbedder, run: Run) -> list[Line]:
    run.tell(f"{labelled.name}: {len(labelled.items)} items, {len(labelled.queries)} questions")
    tables = SqliteTables(None)
    ours = await open_recall(tables, run.folder(labelled.name.partition(",")[0]), embedder)
    await ours.put(labelled.items)
    searchers: dict[str, Searcher] = {
        "grep": grep(labelled.items),
        "BM25": plain_bm25(labelled.items),
        "vectors alone": await vectors_alone(labelled.items, embedder),
        "recall": _searcher(ours),
    }
    found: dict[str, Quality] = {name: await measure(labelled, search) for name, search in searchers.items()}
    await tables.close()
    for name, quality in found.items():
        run.tell(f"{labelled.name}, {name}: {quality.line()}")
    lines = []
    for name, quality in found.items():
        gained = quality.ndcg10 - found["BM25"].ndcg10
        ours_line = name == "recall"
        lines.append(
            Line(
                what=f"{labelled.name}: {name}", ours=quality.line(), peer=f"{gained:+.3f} nDCG@10 over BM25",
                how=f"{len(labelled.items)} items, {len(labelled.queries)} questions",
                bar=f"≥ +{GAIN}" if ours_line else "–", holds=gained >= GAIN if ours_line else None,
            )
        )  # fmt: skip
    return lines


def _searcher(ours: Recall) -> Searcher:
    async def search(asked: Asked) -> list[str]:
        found = await ours.search(asked.query, scope=asked.scope, limit=10, neighbours=True)
        return [hit.id for hit in found.hits]

    return search
