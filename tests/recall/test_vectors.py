"""Search by meaning: the same promises on both databases, whatever happens to vectors, model and index."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from sampling import dice, fewer
from toolgate.core.errors import Unavailable
from toolgate.recall import vector_index
from toolgate.recall.engine import Item, Recall, open_recall
from toolgate.recall.vector_index import VectorIndex
from toolgate.storage.tables import SqliteTables

from .conftest import MakeTables
from .embedders import TOPICS, WordEmbedder, crowd


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
async def recall(make_tables: MakeTables, tmp_path: Path, embedder: WordEmbedder) -> Recall:
    return await open_recall(make_tables(), tmp_path / "recall", embedder)


@pytest.fixture
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs from 200 vectors on, as if they were many."""
    monkeypatch.setattr(vector_index, "EXACT_MOST", 200)


async def found(recall: Recall, query: str, scope: str = "me", **more: object) -> list[str]:
    return [hit.id for hit in (await recall.search(query, scope=scope, **more)).hits]  # type: ignore[arg-type]


async def test_what_means_the_same_is_found_without_a_common_word(recall: Recall) -> None:
    await recall.put([Item("1", "me", "a cat on the roof"), Item("2", "me", "a song on the radio")])
    [hit, *_] = (await recall.search("feline", scope="me")).hits
    assert (hit.id, hit.lexical) == ("1", None)
    assert hit.semantic is not None
    assert hit.semantic > 0.3


async def test_an_equal_text_is_embedded_once(recall: Recall, embedder: WordEmbedder) -> None:
    await recall.put([Item(f"c{n}", "me", "the very same text") for n in range(200)])
    assert embedder.texts == 1
    await recall.put([Item("c0", "me", "the very same text", kind="moved")])
    assert embedder.texts == 1
    await recall.put([Item("c0", "other", "the very same text")])
    assert embedder.texts == 2, "nothing is taken from another scope"


@pytest.mark.parametrize("exact", [True, False])
async def test_copies_do_not_crowd_out_the_others(
    recall: Recall, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    monkeypatch.setattr(vector_index, "EXACT_MOST", 10_000 if exact else 200)
    copies = [Item(f"c{n:03}", "me", "the deploy key is in the vault", kind=str(n % 2)) for n in range(400)]
    others = [Item(f"o{n}", "me", f"a key of door number{n}") for n in range(12)]
    await recall.put([*copies, *others])
    hits = (await recall.search("where is the deploy key", scope="me", limit=12)).hits
    assert len(hits) == 12, "each text once, and the rest of them"
    assert [len(hit.copies) for hit in hits] == [399, *[0] * 11]
    assert all(hit.semantic is not None for hit in hits)
    [even, *_] = (await recall.search("deploy key", scope="me", limit=12, kinds=["0"])).hits
    assert len(even.copies) == 199, "copies meet the filters too"


@pytest.mark.usefixtures("small_graphs")
async def test_a_search_reads_its_candidates_and_never_the_whole_scope(tmp_path: Path) -> None:
    tables = SqliteTables(tmp_path / "features.db")
    recall = await open_recall(tables, tmp_path / "recall", WordEmbedder())
    await recall.put(crowd(300))
    await recall.search("harbour feline", scope="me")  # counts are taken, the index is made
    plans: list[str] = []
    fetch = tables.fetch

    async def watched(sql: str, *values: object) -> list[dict[str, object]]:
        plans.extend(row["detail"] for row in await fetch(f"EXPLAIN QUERY PLAN {sql}", *values))
        return await fetch(sql, *values)

    tables.fetch = watched  # type: ignore[method-assign]
    await recall.search("harbour feline", scope="me")
    await recall.search("harbour feline", scope="me", limit=299)
    read = [plan for plan in plans if "recall_removed" not in plan and "COVERING" not in plan]
    assert any("PRIMARY KEY" in plan for plan in read)
    assert not [plan for plan in read if "(scope=?" in plan or "SCAN p" in plan], read
    await tables.close()


@pytest.mark.usefixtures("small_graphs")
async def test_words_are_counted_again_when_a_scope_has_grown_through_another_process(
    tmp_path: Path,
) -> None:
    mine, theirs = SqliteTables(tmp_path / "features.db"), SqliteTables(tmp_path / "features.db")
    ours = await open_recall(mine, tmp_path / "index", None)
    other = await open_recall(theirs, tmp_path / "index", None)
    await other.put([Item(str(n), "me", "common words" if n else "seldom seen") for n in range(2500)])
    store = ours._store  # type: ignore[attr-defined]
    assert (await store.frequencies("me", ["seldom"])).of == {"seldom": 1}
    await other.put([Item(f"more {n}", "me", "seldom seen") for n in range(100)])
    assert (await store.frequencies("me", ["seldom"])).of == {"seldom": 1}  # little has changed
    await other.put([Item(f"many {n}", "me", "seldom seen") for n in range(900)])
    counted = await store.frequencies("me", ["seldom"])
    assert (counted.passages, counted.of) == (3500, {"seldom": 1001})
    await mine.close()
    await theirs.close()


async def test_filters_lose_nothing_however_few_pass(recall: Recall) -> None:
    await recall.put(crowd(700))
    hits = (await recall.search("feline harbour", scope="me", kinds=["7"], limit=20)).hits
    assert len(hits) == 7
    assert all(hit.semantic is not None for hit in hits)


@pytest.mark.usefixtures("small_graphs")
async def test_no_search_ever_returns_an_item_of_another_scope(recall: Recall) -> None:
    """50 scopes with nearly the same texts."""
    scopes = [f"user{n}" for n in range(50)]
    await recall.put([item for scope in scopes for item in crowd(fewer(40, 8), scope)])
    chance = dice("scopes")
    for _ in range(fewer(10_000, 100)):
        scope = chance.choice(scopes)
        words = chance.sample([*TOPICS, "feline", f"number{chance.randrange(40)}", scope], 3)
        hits = (await recall.search(" ".join(words), scope=scope, limit=chance.choice([1, 5, 60]))).hits
        assert hits
        assert {hit.id.partition("-")[0] for hit in hits} == {scope}


async def test_two_processes_write_one_scope(make_tables: MakeTables, tmp_path: Path) -> None:
    one, two = [await open_recall(make_tables(), tmp_path / "recall", WordEmbedder()) for _ in range(2)]
    items = crowd(120)
    await asyncio.gather(one.put(items[:60]), two.put(items[60:]), one.put(items[50:70]))
    for _ in range(10):
        await asyncio.gather(one.put(items[50:70]), two.put(items[50:70]))
    for recall in (one, two):
        assert (await recall.search("number115 feline", scope="me")).hits[0].id == "me-115"
        assert len(await found(recall, "feline", limit=500)) == 120
    assert (await two.search("novelty", scope="me")).hits[0].lexical is None
    await one.put([Item("late", "me", "a novelty of the other process")])
    assert (await two.search("novelty", scope="me")).hits[0].id == "late"
    await one.remove("me", ["me-115"])
    assert "me-115" not in await found(two, "number115", limit=500)


async def test_a_model_that_fails_leaves_words_and_says_so(recall: Recall, embedder: WordEmbedder) -> None:
    embedder.broken = True
    await recall.put([Item("1", "me", "a cat on the roof")])
    answer = await recall.search("cat", scope="me")
    assert [hit.id for hit in answer.hits] == ["1"]
    assert "the model is gone" in answer.degraded
    embedder.broken = False
    answer = await recall.search("cat", scope="me")
    assert "1 of 1 passages" in answer.degraded
    assert await recall.reembed() == 1
    assert (await recall.search("feline", scope="me")).degraded == ""


async def test_another_model_is_mixed_while_it_is_made_and_pure_afterwards(
    make_tables: MakeTables, tmp_path: Path
) -> None:
    await (await open_recall(make_tables(), tmp_path / "recall", WordEmbedder())).put(crowd(300))
    new = WordEmbedder("test/other@2", 32)
    recall = await open_recall(make_tables(), tmp_path / "recall", new)
    seen: list[tuple[int, int]] = []

    async def stop_half_way(done: int, every: int) -> None:
        seen.append((done, every))
        answer = await recall.search("number290 harbour", scope="me")
        assert answer.hits[0].id == "me-290"
        assert "have no vector" in answer.degraded
        if done > 100:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await recall.reembed(stop_half_way)
    before = new.texts
    again = await open_recall(make_tables(), tmp_path / "recall", new)
    assert await again.reembed() == 300 - seen[-1][0]
    assert new.texts < before + 300
    assert await again.reembed() == 0
    answer = await again.search("feline harbour", scope="me")
    assert answer.degraded == ""
    assert (await again.status())["vectors"] == {"test/other@2": 300}


async def test_a_model_that_breaks_while_it_re_embeds_is_told(recall: Recall, embedder: WordEmbedder) -> None:
    embedder.broken = True
    await recall.put(crowd(5))
    with pytest.raises(Unavailable):
        await recall.reembed()


@pytest.mark.usefixtures("small_graphs")
@pytest.mark.sample(2)
@pytest.mark.parametrize("harm", ["torn", "garbage", "gone", "old"])
async def test_a_torn_index_is_made_again(tmp_path: Path, harm: str) -> None:
    tables = SqliteTables(tmp_path / "features.db")
    recall = await open_recall(tables, tmp_path / "recall", WordEmbedder())
    await recall.put(crowd(2600))
    before = await found(recall, "feline harbour", limit=20)
    [file] = (tmp_path / "recall").glob("vectors-*.index")
    data = file.read_bytes()
    if harm == "old":
        await recall.put([Item("new", "me", "feline feline feline")])
        before = await found(recall, "feline", limit=20)
    else:
        file.write_bytes({"torn": data[: len(data) // 2], "garbage": b"\0" * 500, "gone": b""}[harm])
    again = await open_recall(tables, tmp_path / "recall", WordEmbedder())
    after = await found(again, "feline" if harm == "old" else "feline harbour", limit=20)
    assert len(set(after) & set(before)) >= 18, "a graph is not exact"
    assert (harm != "old") or after[0] == "new"
    await tables.close()


@pytest.mark.usefixtures("small_graphs")
async def test_a_removed_text_leaves_no_index_file_behind(tmp_path: Path) -> None:
    tables = SqliteTables(tmp_path / "features.db")
    recall = await open_recall(tables, tmp_path / "recall", WordEmbedder())
    await recall.put(crowd(2600))
    await recall.search("harbour", scope="me")
    assert list((tmp_path / "recall").glob("vectors-*"))
    await recall.remove("me", ["me-7"])
    assert not list((tmp_path / "recall").glob("vectors-*"))
    assert "me-7" not in await found(recall, "number7", limit=50)
    await recall.close()
    assert list((tmp_path / "recall").glob("vectors-*")), "the next one need not make it again"
    await tables.close()


@pytest.mark.usefixtures("small_graphs")
def test_a_removed_vector_is_in_no_file_that_is_written_later(tmp_path: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(3000, 64)).astype(np.float32)
    index, gone = VectorIndex(tmp_path / "file", "model", 64), list(range(0, 3000, 7))
    index.add(list(range(3000)), rows)
    index.save()
    stored = [(row * (127 / np.linalg.norm(row))).astype(np.int8).tobytes()[:32] for row in rows]
    before = (tmp_path / "file").read_bytes()
    assert all(each in before for each in stored[:50])
    index.drop(gone)
    index.save()
    after = (tmp_path / "file").read_bytes()
    assert not any(stored[key] in after for key in gone)
    assert all(stored[key] in after for key in range(50) if key not in gone)
    again = VectorIndex(tmp_path / "file", "model", 64)
    assert again.load()
    assert len(again) == 3000 - len(gone)
    assert not again.nearest(np.ones(64, np.float32), 3000).keys() & set(gone)
