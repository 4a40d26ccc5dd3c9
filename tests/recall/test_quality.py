"""Quality on the halves of the labelled sets that nothing was tuned on, a part of them: `python -m bench recall` has all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bench.recall import _searcher
from bench.recall_quality import measure, plain_bm25
from bench.recall_sets import LabelledSet, conversations, documents

from sampling import EVERYTHING
from toolgate.recall.embedding import local_embedder
from toolgate.recall.engine import open_recall
from toolgate.storage.tables import SqliteTables


def _part(labelled: LabelledSet, items: int, longest: int) -> LabelledSet:
    kept = [item for item in labelled.items if len(item.text) <= longest][:items]
    ids = {item.id for item in kept}
    return LabelledSet(labelled.name, kept, [asked for asked in labelled.queries if asked.gold <= ids])


@pytest.mark.parametrize(("make", "items"), [(conversations, 110), (documents, 45)])
async def test_recall_beats_bm25_by_a_twentieth(
    make: Callable[[str], LabelledSet], items: int, tmp_path: Path
) -> None:
    whole = make("reporting")
    labelled = whole if EVERYTHING else _part(whole, items, 900)
    assert len(labelled.queries) >= 10
    tables = SqliteTables(None)
    recall = await open_recall(tables, tmp_path, local_embedder("granite", tmp_path))
    await recall.put(labelled.items)
    ours = await measure(labelled, _searcher(recall))
    plain = await measure(labelled, plain_bm25(labelled.items))
    await tables.close()
    assert ours.ndcg10 >= plain.ndcg10 + 0.05, f"\nours {ours.line()}\nBM25 {plain.line()}"


def test_the_halves_share_no_question_and_no_exchange() -> None:
    for make in (conversations, documents):
        tuning, reporting = make("tuning"), make("reporting")
        assert not {asked.query for asked in tuning.queries} & {asked.query for asked in reporting.queries}
    said = [
        {item.text.partition(": ")[2] for item in conversations(half).items}
        for half in ("tuning", "reporting")
    ]
    assert len(said[0] & said[1]) < 150, "small talk only"
