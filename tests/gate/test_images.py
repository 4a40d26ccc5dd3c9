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
from toolgate.ledger.needed import images_needed
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
    assert needed not in await images_needed(gate.services.ledger)
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
    assert needed in await images_needed(gate.services.ledger)
    await gate.resolve(lost.meta.call_id, "happened", reason="it is there")
    assert needed not in await images_needed(gate.services.ledger)


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
