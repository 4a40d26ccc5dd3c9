"""A directory on the way to a file is no part of what a human approves: somebody else may make it meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import soon
from toolgate.core.call import call_digest
from toolgate.core.change import Change, FileChange
from toolgate.core.event import Asked
from toolgate.core.paths import MountPath
from toolgate.ledger.ledger import Work
from toolgate.storage.port import Filter

CALLS = 33


def config(decision: str = "ask") -> dict[str, Any]:
    return {
        "version": 1,
        "default_persona": "p",
        "personas": {"p": {"phase": "contribute"}},
        "consent": {"max_open": 100},
        "policy": {"rules": [{"name": "r", "persona": "p", "tools": ["fs.*"], "decision": decision}]},
    }


WAYS: dict[str, Any] = {
    "fs.write": lambda n: {"path": f"new/deep/dir/f{n}", "content": f"{n}"},
    "fs.append": lambda n: {"path": f"new/deep/dir/f{n}", "text": f"{n}"},
    "fs.ensure_dir": lambda n: {"path": f"new/deep/dir/d{n}"},
    "fs.move": lambda n: {"path": f"old{n}", "new_path": f"new/deep/dir/f{n}"},
    "fs.patch": lambda n: {
        "diff": f"--- /dev/null\n+++ b/new/deep/dir/f{n}\n@@ -0,0 +1 @@\n+{n}\n",
    },
}


@pytest.mark.parametrize("name", list(WAYS))
async def test_many_calls_into_one_new_directory_are_asked_about_once_each(tmp_path: Path, name: str) -> None:
    for number in range(CALLS):
        (tmp_path / f"old{number}").write_text(f"{number}")
    async with toolgate.open(tmp_path, config(), "memory") as gate:
        calls = {asyncio.create_task(gate.call(name, WAYS[name](number))) for number in range(CALLS)}
        while len(await gate.approvals()) < CALLS:
            await asyncio.sleep(0)
        results = []
        while calls:  # one after the other: each finds what those before it have made
            await gate.answer((await gate.approvals())[0].id, "approve")
            done, calls = await soon(asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED))
            results += [task.result() for task in done]
        assert [result.error for result in results] == [None] * CALLS
        assert len(await gate.events(Filter(kinds=("asked",), limit=1000))) == CALLS
    assert len(list((tmp_path / "new/deep/dir").iterdir())) == CALLS


async def test_undo_removes_the_directories_that_the_call_really_made_and_no_other(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, config("allow"), "memory") as gate:
        files = gate.services.files
        assert files is not None
        real = files.apply

        async def somebody_is_faster(change: Change) -> None:
            (tmp_path / "new").mkdir(exist_ok=True)
            await real(change)

        files.apply = somebody_is_faster  # type: ignore[method-assign]
        written = await gate.call("fs.write", {"path": "new/deep/f", "content": "x"})
        files.apply = real  # type: ignore[method-assign]
        assert written.ok
        assert (await gate.undo(written.meta.event_id or 0)).ok
        assert (tmp_path / "new").is_dir(), "somebody else made it"
        assert not (tmp_path / "new/deep").exists(), "the call made it"
        assert (await gate.verify()).ok


async def test_a_directory_that_is_the_point_of_the_call_stays_part_of_it(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, config(), "memory") as gate:
        first = await gate.call("fs.ensure_dir", {"path": "a/b"}, wait=False)
        other = await gate.call("fs.ensure_dir", {"path": "a/c"}, wait=False)
        assert first.data["question"] != other.data["question"]
        (tmp_path / "a").mkdir()
        again = await gate.call("fs.ensure_dir", {"path": "a/b"}, wait=False)
        assert again.data["question"] == first.data["question"]


async def test_an_approval_that_named_the_parents_still_counts(tmp_path: Path) -> None:
    """Questions of earlier versions have a digest that holds every directory."""
    async with toolgate.open(tmp_path, config(), "memory") as gate:
        ident = (await gate.call("fs.write", {"path": "new/f", "content": "x"}, wait=False)).data["question"]
        (row,) = await gate.events(Filter(ref=ident))
        body = json.loads(row.body)
        made = FileChange(MountPath.parse("new"), None, b"", kind="directory")
        change = Change((made, FileChange(MountPath.parse("new/f"), None, b"x")))
        args = json.dumps(body["args"], sort_keys=True, separators=(",", ":"))
        former = call_digest("fs.write", body["definition"], args, "p", change, parents=True)
        assert former != body["digest"]

        asked = Asked(persona="p", tool="fs.write", ref="q_old", **{**body, "digest": former})
        await gate.services.ledger.do(Work(lambda view: view.emit(asked)))
        await gate.answer("q_old", "approve")
        assert (await gate.call("fs.write", {"path": "new/f", "content": "x"}, wait=False)).ok


async def test_a_directory_that_all_want_is_asked_about_once_and_undone_by_its_maker(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, config(), "memory") as gate:
        asked = await gate.call("fs.ensure_dir", {"path": "new/dir"}, wait=False)
        (tmp_path / "new/dir").mkdir(parents=True)
        again = await gate.call("fs.ensure_dir", {"path": "new/dir"}, wait=False)
        assert again.data["question"] == asked.data["question"]
        await gate.answer(asked.data["question"], "approve")
        done = await gate.call("fs.ensure_dir", {"path": "new/dir"}, wait=False)
        assert done.data == {"path": "new/dir", "created": False, "findings": []}
        assert not (await gate.undo(done.meta.event_id or 0)).ok
    assert (tmp_path / "new/dir").is_dir()
