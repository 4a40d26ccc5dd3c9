"""The promises of recall, the same on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.recall.engine import Item, Recall, open_recall

from .conftest import MakeTables

DAY = datetime(2026, 3, 14, 9, tzinfo=UTC)


@pytest.fixture
async def recall(make_tables: MakeTables, tmp_path: Path) -> Recall:
    return await open_recall(make_tables(), tmp_path / "recall", None)


async def ids(recall: Recall, query: str, scope: str = "me", **more: object) -> list[str]:
    return [hit.id for hit in (await recall.search(query, scope=scope, **more)).hits]  # type: ignore[arg-type]


async def test_what_is_put_is_found_by_its_words_in_any_form(recall: Recall) -> None:
    await recall.put([Item("1", "me", "We adopted two puppies."), Item("2", "me", "The invoice was paid.")])
    assert await ids(recall, "Who was adopting a puppy?") == ["1"]
    assert await ids(recall, "invoices") == ["2"]


async def test_a_hit_says_why_and_the_best_of_bad_ones_stays_low(recall: Recall) -> None:
    await recall.put([Item(str(n), "me", f"note {n} about the harbour and the boats") for n in range(20)])
    found = await recall.search("quantum chromodynamics lectures at the harbour", scope="me")
    assert found.hits[0].lexical is not None
    assert 0 < found.hits[0].score < 0.5
    assert found.hits[0].semantic is None
    assert "no embedding model" in found.degraded


async def test_an_item_is_replaced_by_its_id_and_gone_when_removed(recall: Recall) -> None:
    await recall.put([Item("1", "me", "lives in Lisbon")])
    await recall.put([Item("1", "me", "lives in Porto")])
    assert await ids(recall, "Lisbon") == []
    assert await ids(recall, "Porto") == ["1"]
    await recall.remove("me", ["1", "never there"])
    assert await ids(recall, "Porto") == []


async def test_the_same_id_in_another_scope_is_another_item(recall: Recall) -> None:
    await recall.put(
        [Item("1", "ann", "the key is under the mat"), Item("1", "bob", "the key is in the car")]
    )
    await recall.remove("bob", ["1"])
    assert await ids(recall, "key", "ann") == ["1"]
    assert await ids(recall, "key", "bob") == []


async def test_filters_are_applied_before_the_best_are_chosen(recall: Recall) -> None:
    many = [Item(f"x{n}", "me", "tea tea tea", kind="noise", at=DAY) for n in range(300)]
    one = Item("it", "me", "a cup of tea, once", "fact", ("drink", "hot"), DAY.replace(year=2027), "2027-W10")
    await recall.put([*many, one])
    for more in (
        {"kinds": ["fact"]}, {"tags": ["hot", "drink"]}, {"since": DAY.replace(month=4)},
        {"period": "2027-W"}, {"ids": {"it"}},
    ):  # fmt: skip
        assert await ids(recall, "tea", **more) == ["it"], more
    assert await ids(recall, "tea", tags=["hot", "cold"]) == []
    assert await ids(recall, "tea", until=DAY) == []


async def test_equal_texts_are_one_hit_that_names_its_copies(recall: Recall) -> None:
    await recall.put([Item(f"c{n:04}", "me", "the sky is green") for n in range(1000)])
    await recall.put([Item("other", "me", "the sky over there")])
    hits = (await recall.search("sky", scope="me")).hits
    assert {hit.id for hit in hits} & {"other"}
    assert len(hits) == 2
    assert max(len(hit.copies) for hit in hits) == 999


async def test_a_similarity_that_nothing_has_is_not_looked_for_ever_deeper(recall: Recall) -> None:
    await recall.put([Item(str(n), "me", f"note {n} about the harbour") for n in range(500)])
    store, depths = recall._store, []  # type: ignore[attr-defined]
    lexical = store.lexical

    async def watched(*args: object) -> object:
        depths.append(args[-2])
        return await lexical(*args)

    store.lexical = watched
    assert await ids(recall, "quantum harbour lectures", min_similarity=0.99) == []
    assert depths == [100]


async def test_neighbours_of_a_hit_are_found_where_there_is_a_conversation(recall: Recall) -> None:
    turns = ["Ann: Any plans?", "Bob: What is the name of your dog, Ann?", "Ann: Rex!", "Bob: Lovely."]
    await recall.put([Item(str(n), "me", text, conversation="c", place=n) for n, text in enumerate(turns)])
    await recall.put([Item("doc", "me", "unrelated", place=2)])
    assert "2" not in await ids(recall, "what is the dog called")
    found = (await recall.search("what is the dog called", scope="me", neighbours=True)).hits
    assert [hit.neighbour_of for hit in found if hit.id == "2"] == ["1"]
    assert "doc" not in [hit.id for hit in found]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "a\0b",
        "\ud800",
        "日本語の文章と English",
        "x" * 1_000_000,
        "the of and",
        '"; DROP TABLE x; --',
    ],
)
async def test_odd_texts_are_stored_and_asked_for(recall: Recall, text: str) -> None:
    await recall.put([Item("odd", "me", text), Item("plain", "me", "a plain word")])
    await recall.search(text, scope="me")
    assert await ids(recall, "plain") == ["plain"]


async def test_scripts_without_spaces_are_found_by_a_piece(recall: Recall) -> None:
    await recall.put([Item("1", "me", "東京都に住んでいます"), Item("2", "me", "大阪で働く")])
    assert await ids(recall, "東京") == ["1"]


async def test_a_query_of_stop_words_alone_is_answered(recall: Recall) -> None:
    await recall.put([Item("1", "me", "to be or not to be"), Item("2", "me", "tomatoes")])
    assert await ids(recall, "to be or not to be") == ["1"]


async def test_items_without_id_or_scope_and_giant_ones_are_refused(recall: Recall) -> None:
    for item in (Item("", "me", "x"), Item("1", "", "x")):
        with pytest.raises(InvalidArgs):
            await recall.put([item])
    with pytest.raises(TooLarge):
        await recall.put([Item("1", "me", "x" * 4_000_001)])
    with pytest.raises(InvalidArgs):
        await recall.search("x", scope="")


async def test_who_says_it_counts_more_than_who_is_spoken_to(recall: Recall) -> None:
    await recall.put(
        [
            Item("1", "me", "Mina: Rahel, I finished the pottery course.", conversation="c", place=0),
            Item("2", "me", "Rahel: Great! I finished the sailing course.", conversation="d", place=0),
        ]
    )
    for query in ("which course did Rahel finish", "which course did rahel finish"):
        found = await recall.search(query, scope="me", neighbours=True)
        assert found.hits[0].id == "2", query
        assert "speaker" in found.hits[0].boosts
        assert "speaker" not in found.hits[1].boosts


async def test_in_a_chat_with_an_assistant_i_and_you_are_known(recall: Recall) -> None:
    await recall.put(
        [
            Item("mine", "me", "User: The budget of my garden project is tight.", conversation="c", place=0),
            Item("its", "me", "Assistant: The budget of a garden project is best planned early.", conversation="d", place=0),
        ]
    )  # fmt: skip
    for query, first in (
        ("what did I say about the budget of the garden project", "mine"),
        ("what did you say about the budget of the garden project", "its"),
        ("what is my budget for the garden project", "mine"),
        ("what you recommended for the budget of my garden project", "its"),
    ):
        found = (await recall.search(query, scope="me", neighbours=True)).hits
        assert found[0].id == first, query
        assert [hit.id for hit in found if "speaker" in hit.boosts] == [first], query
