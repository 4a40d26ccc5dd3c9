"""Kill -9 in the middle of a ten-file patch: the next start finishes it or takes it back, as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolgate
from toolgate.core.change import content_hash

from . import patch_to_kill
from .patch_to_kill import CONFIG, KEYS, after, before


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "project"
    for name, content in before().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def killed_after(root: Path, files: int, *more: str) -> None:
    source = str(Path(toolgate.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, patch_to_kill.__file__, str(root), str(files), *more],
        env=os.environ | {"PYTHONPATH": source}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr


def on_disk(root: Path) -> dict[str, bytes]:
    files = (
        file for file in root.rglob("*") if file.is_file() and ".toolgate" not in file.relative_to(root).parts
    )
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


async def settled(root: Path) -> tuple[str, str]:
    """What the next start makes of it: the event's kind, and how it knows."""
    async with toolgate.open(root, CONFIG, keys=KEYS) as gate:
        end, start = (await gate.events())[:2]
        assert (start.kind, start.call, len(json.loads(start.body)["change"])) == ("started", end.call, 10)
        assert (await gate.verify()).ok
        return end.kind, json.loads(end.body)["reconciled"]


@pytest.mark.parametrize("files", [1, 5, 9])
async def test_a_patch_killed_midway_is_finished_at_the_next_start(project: Path, files: int) -> None:
    killed_after(project, files)
    torn = {name: content for name, content in on_disk(project).items() if ".toolgate-tmp-" not in name}
    assert torn not in (before(), after())
    assert await settled(project) == (
        "committed",
        "it was interrupted; the rest was written from the kept images",
    )
    assert on_disk(project) == after()


async def test_a_patch_killed_before_its_first_file_did_not_happen(project: Path) -> None:
    killed_after(project, 0)
    assert await settled(project) == ("failed", "every file still has its old content")
    assert on_disk(project) == before()


async def test_a_patch_killed_after_its_last_file_happened(project: Path) -> None:
    killed_after(project, 10)
    assert (await settled(project))[0] == "committed"
    assert on_disk(project) == after()


async def test_a_patch_that_cannot_be_finished_is_taken_back_as_a_whole(project: Path) -> None:
    killed_after(project, 5)
    lost = content_hash(after()["made.txt"])
    assert lost is not None
    name = lost.removeprefix("sha256:")
    (project / ".toolgate" / "images" / name[:2] / name[2:]).unlink()
    kind, how = await settled(project)
    assert (kind, "taken back" in how) == ("failed", True)
    assert on_disk(project) == before()


async def test_a_patch_is_left_alone_where_somebody_else_went_on_after_the_crash(project: Path) -> None:
    killed_after(project, 5)
    (project / "src/0.txt").write_bytes(b"somebody else's\n")
    torn = {name: content for name, content in on_disk(project).items() if ".toolgate-tmp-" not in name}
    kind, how = await settled(project)
    assert (kind, "neither its old nor its new" in how) == ("unknown", True)
    assert on_disk(project) == torn


@pytest.mark.parametrize("files", [1, 7])
async def test_an_undo_of_several_calls_killed_midway_is_finished_and_counts(
    project: Path, files: int
) -> None:
    killed_after(project, files, "undo")
    async with toolgate.open(project, CONFIG, keys=KEYS) as gate:
        assert on_disk(project) == before()
        assert not (project / "deep").exists()
        rows = [row.kind for row in reversed(await gate.events())][-4:]
        assert rows == ["started", "committed", "undone", "undone"]
        assert (await gate.artifacts("talk"))["artifacts"][0]["op"] == "undone"
        again = await gate.undo(conversation="talk")
        assert again.error is not None
        assert "undone already" in again.error.message
        redone = await gate.undo(next(row.seq for row in await gate.events() if row.kind == "committed"))
        assert redone.ok, redone.error
        assert on_disk(project) == after() | {"made.txt": b"made again\n", "deep/er.txt": b"deep\n"}
