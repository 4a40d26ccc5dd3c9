"""What calls changed is listed from the ledger, per conversation, with hashes, sizes and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.change import content_hash
from toolgate.facade import Gate

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "collaborate", "allow": ["fs.*"]}, "reader": {"phase": "observe"}},
}


async def do(gate: Gate, verb: str, conversation: str = "c-1", **args: Any) -> int:
    result = await gate.call(f"fs.{verb}", args, conversation=conversation)
    assert result.ok, result.error
    assert result.meta.event_id is not None
    return result.meta.event_id


async def test_every_changed_file_of_a_conversation_is_listed(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        first = await do(gate, "write", path="a", content="1")
        second = await do(gate, "write", path="a", content="22")
        moved = await do(gate, "move", path="old", new_path="new")
        undone = await do(gate, "write", path="b", content="x")
        await do(gate, "write", conversation="c-2", path="elsewhere", content="x")
        undo = (await gate.undo(undone)).meta.event_id
        (tmp_path / "a").write_text("somebody else's")

        result = await gate.call("events.artifacts", {"conversation": "c-1"}, persona="reader")
        assert result.ok, result.error
        assert result.data == dict(await gate.artifacts("c-1"))
        found = {one["path"].partition(":")[2]: one for one in result.data["artifacts"]}
        assert set(found) == {"a", "old", "new", "b"}
        brief = {
            name: (one["op"], one["before"], one["after"], one["size"], one["now"])
            for name, one in found.items()
        }
        old = content_hash(b"old")
        assert brief == {
            "a": ("create", None, content_hash(b"22"), 2, "moved on"),
            "old": ("delete", old, None, None, "intact"),
            "new": ("create", None, old, 3, "intact"),
            "b": ("undone", None, None, None, "intact"),
        }
        assert [step["event_id"] for step in found["a"]["changes"]] == [first, second]
        (rename,) = found["new"]["changes"]
        assert (rename["event_id"], rename["op"], rename["origin"]) == (moved, "rename", "project:old")
        taken, back = found["b"]["changes"]
        assert (taken["undone_by"], back["undoes"], back["event_id"]) == (undo, [undone], undo)
        (tmp_path / "a").unlink()
        (a,) = (one for one in (await gate.artifacts("c-1"))["artifacts"] if one["path"] == "project:a")
        assert a["now"] == "gone"


async def test_a_change_that_was_taken_back_has_the_hash_and_size_from_before_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        first = await do(gate, "write", path="a", content="1")
        second = await do(gate, "write", path="a", content="22")
        assert (await gate.undo(first, second)).ok
        (a,) = (await gate.artifacts("c-1"))["artifacts"]
        told = a["op"], a["before"], a["after"], a["size"], a["now"]
        assert told == ("undone", content_hash(b"before"), content_hash(b"before"), 6, "intact")


async def test_a_redone_change_counts_again_and_the_list_says_that_there_is_more(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        event = await do(gate, "write", path="d/a", content="1")
        undo = (await gate.undo(event)).meta.event_id
        assert undo is not None
        assert (await gate.undo(undo)).ok
        found = {(one["path"], one["kind"]): one for one in (await gate.artifacts())["artifacts"]}
        assert (found["project:d/a", "file"]["op"], found["project:d", "directory"]["op"]) == (
            "create",
            "create",
        )
        assert (await gate.artifacts(limit=1))["more"]
