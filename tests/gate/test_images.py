"""The budget of images as a caller meets it: refused before anybody is asked, dropped when old, said when gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import soon
from toolgate import Change, Context, FileChange, MountPath, tool
from toolgate.core.change import content_hash
from toolgate.core.errors import UnknownOutcome
from toolgate.facade import Gate
from toolgate.faces.mcp.question import text as text_of
from toolgate.workspace.files import WorkspaceFiles

TOTAL = 1 << 20
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "bob",
    "personas": {"bob": {"phase": "contribute"}},
    "images": {"total_bytes": TOTAL, "change_bytes": 500_000},
    "policy": {
        "rules": [{"persona": "bob", "tools": ["fs.*", "t.*"], "decision": "allow", "reason": "the test"}]
    },
}


def large(letter: str) -> str:
    return letter * 300_000


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with toolgate.open(tmp_path, CONFIG, "memory") as opened:
        yield opened


def images_of(gate: Gate) -> Any:
    assert isinstance(gate.services.files, WorkspaceFiles)
    return gate.services.files.images


async def write(gate: Gate, name: str, letter: str) -> int:
    result = await gate.call("fs.write", {"path": name, "content": large(letter)})
    assert result.ok, result.error
    assert result.meta.event_id is not None
    return result.meta.event_id


async def test_old_images_go_and_undo_says_so_and_what_to_do(gate: Gate, tmp_path: Path) -> None:
    events = [await write(gate, f"{letter}.txt", letter) for letter in "abcdef"]
    kept = images_of(gate).usage()
    assert kept.bytes <= TOTAL
    await gate.undo(events[-1])
    assert not (tmp_path / "f.txt").exists()
    gone = await gate.undo(events[0])
    assert gone.error is not None
    assert gone.error.code == "not_found"
    assert f"event {events[0]} can no longer be undone" in gone.error.message
    assert "restore the file from git or a backup" in gone.error.fix
    assert (tmp_path / "a.txt").read_text() == large("a"), "nothing was touched"


async def test_a_change_that_cannot_be_kept_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    asking = CONFIG | {"policy": {"rules": []}, "images": {"total_bytes": TOTAL, "change_bytes": 1024}}
    async with toolgate.open(tmp_path, asking, "memory") as gate:
        refused = await gate.call("fs.write", {"path": "a.txt", "content": large("a")}, wait=False)
        assert refused.error is not None
        assert (refused.error.code, await gate.approvals()) == ("too_large", [])
        assert "300,000 bytes to keep for undo, and the limit is 1,024" in refused.error.message
    assert not (tmp_path / "a.txt").exists()


def writer(name: str, letter: str, files: WorkspaceFiles, then: Any) -> toolgate.Tool:
    async def plan() -> Change:
        """Write a file."""
        return Change((FileChange(MountPath(f"project:{name}"), None, large(letter).encode()),))

    @tool(f"t.{letter}", writes=["project"], plan=plan)
    async def run(change: Change, context: Context) -> str:
        await files.apply(change)
        return str(await then())

    return run


async def test_what_a_running_call_needs_is_never_dropped(gate: Gate) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        await soon(release.wait())
        return "done"

    assert isinstance(gate.services.files, WorkspaceFiles)
    gate.services.registry.add(writer("slow.txt", "s", gate.services.files, wait))
    running = asyncio.create_task(gate.call("t.s", {}))
    await soon(started.wait())
    for letter in "abcdef":
        await write(gate, f"{letter}.txt", letter)
    needed = content_hash(large("s").encode())
    assert images_of(gate).has(needed)
    release.set()
    assert (await soon(running)).ok
    assert not await gate.services.ledger.calls_needed()
    for letter in "ghij":
        await write(gate, f"{letter}.txt", letter)
    assert not images_of(gate).has(needed), "settled: as old as it is, it goes"


async def test_what_an_unknown_call_needs_is_kept_until_it_is_resolved(gate: Gate) -> None:
    async def lose() -> str:
        raise UnknownOutcome("the line went dead", "look")

    assert isinstance(gate.services.files, WorkspaceFiles)
    gate.services.registry.add(writer("lost.txt", "s", gate.services.files, lose))
    lost = await gate.call("t.s", {})
    assert lost.error is not None
    assert lost.error.code == "unknown_outcome"
    needed = content_hash(large("s").encode())
    for letter in "abcdef":
        await write(gate, f"{letter}.txt", letter)
    assert images_of(gate).has(needed)
    assert await gate.services.ledger.calls_needed() == {lost.meta.call_id}
    await gate.resolve(lost.meta.call_id, "happened", reason="it is there")
    assert not await gate.services.ledger.calls_needed()


async def test_two_gates_on_one_project_drop_nothing_that_the_other_needs(tmp_path: Path) -> None:
    """Each with its own connection to the same ledger, as two processes have."""
    async with toolgate.open(tmp_path, CONFIG) as one, toolgate.open(tmp_path, CONFIG) as two:
        started, release = asyncio.Event(), asyncio.Event()

        async def wait() -> str:
            started.set()
            await soon(release.wait())
            return "done"

        assert isinstance(one.services.files, WorkspaceFiles)
        one.services.registry.add(writer("slow.txt", "s", one.services.files, wait))
        running = asyncio.create_task(one.call("t.s", {}))
        await soon(started.wait())
        for letter in "abcdef":
            await write(two, f"{letter}.txt", letter)
        needed = content_hash(large("s").encode())
        assert images_of(two).usage().bytes <= TOTAL
        assert images_of(one).has(needed)
        release.set()
        assert (await soon(running)).ok


async def test_the_size_of_the_images_is_shown(gate: Gate) -> None:
    await write(gate, "a.txt", "a")
    shown = (await gate.call("system.monitor", {}, persona="bob")).data
    assert shown["images"] == {"count": 1, "bytes": 300_000, "budget": TOTAL}
    assert json.loads(json.dumps(shown["ledger"]))["events"] > 0


FULL = "cannot be undone: the image budget of bob is full"
ASKING = CONFIG | {
    "policy": {"rules": []},
    "personas": {"bob": {"phase": "contribute"}, "eve": {"phase": "contribute"}},
    "images": {"total_bytes": TOTAL, "persona_bytes": 700_000},
}


async def ask(gate: Gate, name: str, letter: str, persona: str = "bob") -> toolgate.Result:
    return await gate.call("fs.write", {"path": name, "content": large(letter)}, persona=persona, wait=False)


async def asked_and_done(gate: Gate, name: str, letter: str) -> toolgate.Result:
    await gate.answer((await ask(gate, name, letter)).data["question"], "approve")
    return await ask(gate, name, letter)


async def test_a_change_that_does_not_fit_is_said_to_be_final_before_it_runs_and_when_it_has(
    tmp_path: Path,
) -> None:
    async with toolgate.open(tmp_path, ASKING, "memory") as gate:
        first = await asked_and_done(gate, "a.txt", "a")
        await asked_and_done(gate, "b.txt", "b")
        pending = await ask(gate, "c.txt", "c")
        (question,) = await gate.approvals()
        assert (question.undoable, question.unkept) == (False, FULL)
        assert FULL in text_of(question)
        await gate.answer(pending.data["question"], "approve")
        third = await ask(gate, "c.txt", "c")
        assert third.ok
        assert third.data["warning"] == FULL
        assert (await ask(gate, "d.txt", "d", "eve")).data["question"], "others have room"
        assert third.meta.event_id is not None
        undone = await gate.undo(third.meta.event_id)
        assert not undone.ok, "nothing else was promised"
        assert first.meta.event_id is not None
        assert (await gate.undo(first.meta.event_id)).ok
    assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "c.txt").exists()


async def test_an_approval_of_what_could_be_undone_is_none_of_what_cannot(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, ASKING, "memory") as gate:
        await asked_and_done(gate, "a.txt", "a")
        pending = await ask(gate, "c.txt", "c")
        assert (await gate.approvals())[0].undoable
        await asked_and_done(gate, "b.txt", "b")
        await gate.answer(pending.data["question"], "approve")
        again = await ask(gate, "c.txt", "c")
        assert again.error is not None
        assert again.error.code == "pending"
        assert again.data["question"] != pending.data["question"]
    assert not (tmp_path / "c.txt").exists()


async def test_a_change_that_does_not_fit_is_refused_where_the_owner_says_so(tmp_path: Path) -> None:
    strict = ASKING | {"images": ASKING["images"] | {"full": "refuse"}}
    async with toolgate.open(tmp_path, strict, "memory") as gate:
        await asked_and_done(gate, "a.txt", "a")
        last = await asked_and_done(gate, "b.txt", "b")
        refused = await ask(gate, "c.txt", "c")
        assert refused.error is not None
        assert (refused.error.code, refused.error.message) == ("too_large", FULL)
        assert "images.persona_bytes" in refused.error.fix
        assert await gate.approvals() == []
        assert last.meta.event_id is not None
        assert (await gate.undo(last.meta.event_id)).ok, "the human's undo is never refused for this"


async def test_what_cannot_be_undone_does_not_stay_when_it_is_over(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, ASKING, "memory") as gate:
        for letter in "abcd":
            await asked_and_done(gate, f"{letter}.txt", letter)
        there = [letter for letter in "abcd" if images_of(gate).has(content_hash(large(letter).encode()))]
        assert there == ["a", "b"]
