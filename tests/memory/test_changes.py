"""Changing, forgetting, undoing and purging: no update is lost, nobody's words are rewritten, and what is purged is gone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import toolgate
from toolgate.core.names import HUMAN
from toolgate.facade import Gate
from toolgate.features.memory.store import Writer

from .world import POLICY, done, failed, recalled, stored, texts


async def test_a_lost_update_is_refused_and_both_sides_are_known(kept: Gate) -> None:
    ident = await stored(kept, "The budget is 100.")
    await done(
        kept,
        "memory.update",
        {"memory_id": ident, "expected_version": 1, "content": "The budget is 200."},
        "bea",
    )
    result = await failed(
        kept, "memory.update", {"memory_id": ident, "expected_version": 1, "content": "The budget is 300."}
    )
    assert result.error is not None
    assert result.error.code == "conflict"
    assert "version 2" in result.error.message
    assert result.data["current"]["content"] == "The budget is 200."
    assert texts(await recalled(kept, "budget")) == ["The budget is 200."]


async def test_changing_and_forgetting_are_undone_step_by_step(kept: Gate) -> None:
    ident = await stored(kept, "The budget is 100.")
    first = await kept.call(
        "memory.update", {"memory_id": ident, "content": "The budget is 200."}, persona="ada"
    )
    second = await kept.call(
        "memory.update", {"memory_id": ident, "content": "The budget is 300."}, persona="ada"
    )
    gone = await kept.call("memory.forget", {"memory_id": ident}, persona="ada")
    assert await recalled(kept, "budget") == []
    early = await kept.undo(first.meta.event_id or 0)
    assert not early.ok
    for call, text in ((gone, "300"), (second, "200"), (first, "100")):
        taken = await kept.undo(call.meta.event_id or 0)
        assert taken.ok, taken.error
        assert texts(await recalled(kept, "budget")) == [f"The budget is {text}."]
    versions = (await done(kept, "memory.list", {"memory_id": ident}))["memories"][0]["provenance"]
    assert [one["version"] for one in versions] == [7, 6, 5, 4, 3, 2, 1]


async def test_undoing_a_forgetting_says_what_is_purged_and_not_restored(kept: Gate) -> None:
    lost, other = await stored(kept, "The key is under the mat."), await stored(kept, "The mat is blue.")
    removed = await kept.call("memory.forget", {"memory_ids": [lost, other]}, persona="ada")
    await done(kept, "memory.purge", {"memory_ids": [lost]}, HUMAN)
    undone = await kept.undo(removed.meta.event_id or 0)
    assert undone.ok
    assert undone.data["notes"] == [f"not restored, because purged meanwhile: {lost}"]
    assert texts(await recalled(kept, "mat")) == ["The mat is blue."]


async def test_the_journal_never_holds_the_text_and_purge_removes_it_everywhere(tmp_path: Path) -> None:
    word = "zanzibarharbour"
    asks = POLICY | {
        "policy": {"rules": [{"name": "asks", "persona": "bea", "tools": ["memory.*"], "decision": "ask"}]}
    }
    async with toolgate.open(tmp_path, asks) as gate:
        ident = await stored(gate, f"Alice once painted the {word} in blue.")
        await done(
            gate, "memory.update", {"memory_id": ident, "content": f"Alice painted the {word}."}, key="k1"
        )
        waiting = await failed(
            gate, "memory.update", {"memory_id": ident, "content": f"No {word}."}, "bea", wait=False
        )
        assert waiting.error is not None
        question = await gate.question(waiting.data["question"])
        assert question is not None
        assert word in json.dumps(question.args) + question.preview
        await gate.answer(question.id, "deny")
        await done(gate, "memory.recall", {"query": "what did Alice paint"}, key="k2")
        waits = await failed(gate, "memory.forget", {"memory_id": ident}, "bea", wait=False)
        assert waits.error is not None
        assert waits.error.code == "pending"
        with closing(sqlite3.connect(tmp_path / ".toolgate" / "ledger.db")) as ledger:
            journal = ledger.execute("SELECT body FROM journal").fetchall()
        assert word not in str(journal)
        early = await failed(gate, "memory.purge", {"memory_ids": [ident]}, HUMAN)
        assert early.error is not None
        assert early.error.code == "conflict"
        removed = await gate.call("memory.forget", {"memory_id": ident}, persona="ada")
        assert (
            await failed(gate, "memory.purge", {"memory_ids": [ident]}, "ada")
        ).error.code == "not_allowed"  # type: ignore[union-attr]
        await done(gate, "memory.purge", {"memory_ids": [ident]}, HUMAN)
        assert not (await gate.undo(removed.meta.event_id or 0)).ok
        assert (await gate.verify()).ok
        files = [
            file
            for file in (tmp_path / ".toolgate").rglob("*")
            if (file.is_file() and "features" in file.name) or "recall" in str(file)
        ]
        assert files
        assert [file.name for file in files if file.is_file() and word.encode() in file.read_bytes()] == []


async def test_an_update_to_what_another_says_is_refused(kept: Gate) -> None:
    await stored(kept, "Alice likes tea.")
    other = await stored(kept, "Alice likes coffee.")
    result = await failed(kept, "memory.update", {"memory_id": other, "content": "Alice likes tea."})
    assert result.error is not None
    assert result.error.code == "conflict"


async def test_a_persona_puts_its_text_beside_what_a_human_said_and_rewrites_nothing(kept: Gate) -> None:
    mine = await stored(kept, "Alice lives in Berlin.", HUMAN, subject="home")
    changed = await kept.call(
        "memory.update", {"memory_id": mine, "content": "Alice lives in Lisbon."}, persona="ada"
    )
    other = changed.data["memories"][0]["id"]
    assert other != mine
    assert "what a human said" in changed.data["note"]
    found = {one["id"]: one for one in await recalled(kept, "where does Alice live")}
    assert {ident: (one["content"], one["verdict"], one["trust"]) for ident, one in found.items()} == {
        mine: ("Alice lives in Berlin.", "disputed", "high"),
        other: ("Alice lives in Lisbon.", "disputed", "medium"),
    }
    assert found[other]["subject"] == "home"
    assert found[mine]["version"] == 1
    gone = await kept.call("memory.forget", {"memory_id": mine}, persona=HUMAN)  # one way to settle it
    assert [one["verdict"] for one in await recalled(kept, "where does Alice live")] == ["current"]
    assert (await kept.undo(gone.meta.event_id or 0)).ok
    assert (await kept.undo(changed.meta.event_id or 0)).ok  # and the other
    found = {one["id"]: one for one in await recalled(kept, "where does Alice live")}
    assert {ident: one["verdict"] for ident, one in found.items()} == {mine: "current"}


async def test_a_persona_arranges_what_a_human_said_and_still_cannot_rewrite_it(gate: Gate) -> None:
    mine = await stored(gate, "The alarm code is in the blue book.", HUMAN, trust="low")
    told = await done(gate, "memory.update", {"memory_id": mine, "tags": ["house"], "subject": "alarm"})
    assert told["memories"][0]["trust"] == "low"
    again = await stored(gate, "The bank is Alpha.", HUMAN)
    assert (await done(gate, "memory.update", {"memory_id": again, "tags": ["money"]}))["memories"][0][
        "trust"
    ] == "high"
    for ident in (mine, again):
        for change in (
            {"expires_at": "2020-01-01"},
            {"valid_to": "2020-01-01"},
            {"supersedes": [mine]},
            {"evidence": ["x"]},
        ):
            result = await failed(gate, "memory.update", {"memory_id": ident, **change})
            assert result.error is not None
            assert result.error.code == "not_allowed"
        told = await done(gate, "memory.update", {"memory_id": ident, "content": f"It is otherwise: {ident}"})
        assert told["memories"][0]["id"] != ident
    assert (await done(gate, "memory.list", {"memory_id": again}))["memories"][0]["content"] == "The bank is Alpha."  # fmt: skip
    corrected = await done(gate, "memory.update", {"memory_id": again, "content": "The bank is Beta."}, HUMAN)
    assert corrected["memories"][0]["id"] == again


async def test_a_purged_text_leaves_whatever_was_made_of_it_and_names_what_quotes_it(tmp_path: Path) -> None:
    word = "marzipanlantern"  # which the index holds as it is: a stem would not be found in the file
    async with toolgate.open(tmp_path, POLICY) as gate:
        first = await stored(gate, f"Grandmother hid the {word} in the attic.")
        await recalled(gate, word, conversation="talk")
        echo = await stored(gate, f"Grandmother hid the {word} in the attic!", conversation="talk")
        derived = await stored(gate, f"So the {word} is dry.", sources=[first])
        await done(gate, "memory.update", {"memory_id": derived, "content": "It is dry."})
        further = await stored(gate, f"And so is whatever lies on the {word}.", sources=[derived])
        quote = await stored(gate, f"Bea says: grandmother hid  the {word} in the attic. I doubt it.")
        other = await stored(gate, "Grandmother moved it to the cellar.", supersedes=[first])
        await done(gate, "memory.forget", {"memory_id": first})
        told = await done(gate, "memory.purge", {"memory_ids": [first]}, HUMAN)
        assert set(told["made_of_them"]) == {echo, derived, further}
        assert told["quoted_in"] == [quote]
        assert {one["id"] for one in (await done(gate, "memory.list", {}))["memories"]} == {quote, other}
        await done(gate, "memory.forget", {"memory_id": quote})
        assert "quoted_in" not in await done(gate, "memory.purge", {"memory_ids": [quote]}, HUMAN)
        found = [file for file in (tmp_path / ".toolgate").rglob("*") if file.is_file() and "ledger" not in file.name]  # fmt: skip
        assert [file.name for file in found if word.encode() in file.read_bytes()] == []


async def test_what_was_changed_since_it_was_looked_at_is_not_forgotten(kept: Gate) -> None:
    ids = [await stored(kept, f"Note number {number} of the day.") for number in range(3)]
    args = {"memory_ids": ids, "expected_versions": [1, 1, 1]}
    await done(kept, "memory.update", {"memory_id": ids[1], "content": "Now it matters."})
    result = await failed(kept, "memory.forget", args)
    assert result.error is not None
    assert result.error.code == "conflict"
    assert ids[1] in result.error.message
    assert len((await done(kept, "memory.list", {}))["memories"]) == 3
    assert (await done(kept, "memory.forget", args | {"expected_versions": [1, 2, 1]}))["forgotten"] == 3
    wrong = await failed(kept, "memory.forget", {"memory_ids": ids, "expected_versions": [1]})
    assert wrong.error is not None
    assert wrong.error.code == "invalid_args"


async def test_a_purge_that_was_cut_off_is_finished_by_whoever_comes_next(tmp_path: Path) -> None:
    word = "marzipanlantern"

    def held() -> list[str]:
        files = [
            file
            for file in (tmp_path / ".toolgate").rglob("*")
            if file.is_file() and "ledger" not in file.name
        ]
        return [file.name for file in files if word.encode() in file.read_bytes()]

    async with toolgate.open(tmp_path, POLICY) as gate:
        ident = await stored(gate, f"Grandmother hid the {word} in the attic.")
        await done(gate, "memory.forget", {"memory_id": ident})
        store = await gate.feature("memory").records()
        await store.purge([ident], Writer("c_killed", HUMAN, gate.feature("memory").now))  # and no further
    assert held()
    async with toolgate.open(tmp_path, POLICY) as gate:
        assert await recalled(gate, "attic") == []
        assert held() == []
