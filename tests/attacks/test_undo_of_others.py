"""Whatever a persona does, the undo of what a human approved for another stays possible."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import Change, Context, FileChange, MountPath, tool
from toolgate.core.clock import SystemClock
from toolgate.core.errors import Failed
from toolgate.facade import Gate
from toolgate.features.programs.applying import Proposals
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.holdings import ENTRY

TOTAL = 1 << 20
LARGE = 90_000
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "eve",
    "personas": {"ada": {"phase": "contribute"}, "eve": {"phase": "contribute"}},
    "limits": {"persona": {"per_minute": 100_000, "per_hour": 100_000}, "global": {"per_minute": 100_000, "per_hour": 100_000}},
    "images": {"total_bytes": TOTAL},
    "policy": {
        "rules": [
            {"persona": "eve", "tools": ["fs.*", "t.*"], "when": {"path": ["asked/**"]}, "decision": "ask", "reason": "asked"},
            {"persona": "eve", "tools": ["fs.*", "t.*"], "decision": "allow", "reason": "the attacker may write"},
        ]
    },
}  # fmt: skip
BEFORE, AFTER = b"before " * 5000, "after " * 5000
Way = Callable[[Gate, Path], Awaitable[None]]


def letters(number: int, size: int = LARGE) -> str:
    return f"{number:08}" * (size // 8)


async def call(gate: Gate, name: str, **args: Any) -> toolgate.Result:
    done = await gate.call(name, args, persona="eve", wait=False)
    assert done.error is None or done.error.code not in ("invalid_args", "not_allowed"), done.error
    return done


async def many_small_saves(gate: Gate, root: Path) -> None:
    for number in range(80):
        await call(gate, "fs.save", path=f"scratch:{number}.txt", content=letters(number, 8_000))


async def few_large_saves(gate: Gate, root: Path) -> None:
    for number in range(10):
        await call(gate, "fs.save", path="scratch:a.txt", content=letters(number))


async def writes_to_the_project(gate: Gate, root: Path) -> None:
    for number in range(10):
        assert (await call(gate, "fs.write", path=f"{number}.txt", content=letters(number))).ok


async def one_file_over_and_over(gate: Gate, root: Path) -> None:
    for number in range(10):
        await call(gate, "fs.write", path="one.txt", content=letters(number))


async def empty_files(gate: Gate, root: Path) -> None:
    files = gate.services.files
    assert isinstance(files, WorkspaceFiles)
    files.images.persona = 50 * ENTRY  # as if it were thousands of them
    for number in range(80):
        await call(gate, "fs.write", path=f"{number}.txt", content="")


async def moves(gate: Gate, root: Path) -> None:
    for number in range(8):
        (root / f"{number}.bin").write_text(letters(number))
        assert (await call(gate, "fs.move", path=f"{number}.bin", new_path=f"moved/{number}.bin")).ok


async def deletions(gate: Gate, root: Path) -> None:
    for number in range(8):
        (root / f"{number}.bin").write_text(letters(number))
        await call(gate, "fs.delete", path=f"{number}.bin")


async def appends(gate: Gate, root: Path) -> None:
    for number in range(10):
        await call(gate, "fs.append", path="log.txt", text=letters(number, 60_000))


async def the_same_contents_as_the_victim(gate: Gate, root: Path) -> None:
    """Shared images are not let go because one of their holders was pushed out."""
    await call(gate, "fs.save", path="scratch:copy.txt", content=AFTER)
    await call(gate, "fs.write", path="copy.txt", content=BEFORE.decode())
    await few_large_saves(gate, root)
    await writes_to_the_project(gate, root)


async def failing_calls(gate: Gate, root: Path) -> None:
    async def plan(number: int) -> Change:
        """Fail after the plan."""
        return Change((FileChange(MountPath("project:never.txt"), None, letters(number).encode()),))

    @tool("t.fails", writes=["project"], plan=plan)
    async def run(change: Change, context: Context) -> str:
        raise Failed("it never works", "no")

    gate.services.registry.add(run)
    for number in range(10):
        assert not (await call(gate, "t.fails", number=number)).ok
    assert isinstance(gate.services.files, WorkspaceFiles)
    with gate.services.files.images.holdings.reading() as accounts:
        assert accounts.spent("eve") == 0, "nothing came of them, so nothing is kept for them"


async def questions_that_nobody_answers(gate: Gate, root: Path) -> None:
    for number in range(10):
        await call(gate, "fs.write", path=f"asked/{number}.txt", content=letters(number))


async def approved_changes(gate: Gate, root: Path) -> None:
    for number in range(8):
        await approved(gate, "eve", f"asked/{number}.txt", letters(number))


async def a_wide_grant(gate: Gate, root: Path) -> None:
    asked = await call(gate, "fs.write", path="asked/x.txt", content="x")
    await gate.answer(asked.data["question"], "approve", scope={"paths": ["asked/**"]})
    for number in range(10):
        assert (await call(gate, "fs.write", path=f"asked/{number}.txt", content=letters(number))).ok


async def undo_and_redo(gate: Gate, root: Path) -> None:
    for number in range(5):
        done = await call(gate, "fs.write", path=f"{number}.txt", content=letters(number))
        for _ in range(2):
            assert done.meta.event_id is not None
            done = await gate.undo(done.meta.event_id)


async def proposals(gate: Gate, root: Path) -> None:
    files = gate.services.files
    assert isinstance(files, WorkspaceFiles)
    kept = Proposals(root / ".toolgate" / "proposals", files, SystemClock().now)
    for number in range(10):
        change = Change((FileChange(MountPath(f"project:{number}.txt"), None, letters(number).encode()),))
        await kept.keep(change, "eve")


async def another_process(gate: Gate, root: Path) -> None:
    async with toolgate.open(root, CONFIG) as second:
        for number in range(10):
            await call(
                gate if number % 2 else second, "fs.write", path=f"{number}.txt", content=letters(number)
            )
        await many_small_saves(second, root)


WAYS: list[Way] = [
    many_small_saves, few_large_saves, writes_to_the_project, one_file_over_and_over, empty_files, moves, deletions,
    appends, the_same_contents_as_the_victim, failing_calls, questions_that_nobody_answers, approved_changes,
    a_wide_grant, undo_and_redo, proposals, another_process,
]  # fmt: skip


async def approved(gate: Gate, persona: str, path: str, content: str) -> toolgate.Result:
    args = {"path": path, "content": content}
    asked = await gate.call("fs.write", args, persona=persona, wait=False)
    assert asked.data is not None, asked
    await gate.answer(asked.data["question"], "approve")
    return await gate.call("fs.write", args, persona=persona, wait=False)


@pytest.mark.sample(6)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_no_way_pushes_out_the_undo_of_anothers_approved_change(tmp_path: Path, way: Way) -> None:
    file = tmp_path / "main.py"
    file.write_bytes(BEFORE)
    async with toolgate.open(tmp_path, CONFIG) as gate:
        done = await approved(gate, "ada", "main.py", AFTER)
        assert done.ok
        await way(gate, tmp_path)
        assert isinstance(gate.services.files, WorkspaceFiles)
        images = gate.services.files.images
        with images.holdings.reading() as accounts:
            assert accounts.spent("eve") <= images.persona
            assert accounts.spent() <= images.total
        assert done.meta.event_id is not None
        assert file.read_text() == AFTER
        undone = await gate.undo(done.meta.event_id)
        assert undone.ok, undone.error
    assert file.read_bytes() == BEFORE
