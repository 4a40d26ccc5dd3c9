"""Directories and modes as parts of a change: applied, taken back and settled like files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import BlockedPath, Conflict
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.write import settle_change

from .making import at

MADE = Change(
    (
        FileChange(at("d"), None, b"", after_mode=0o700, kind="directory"),
        FileChange(at("d/e"), None, b"", kind="directory"),
        FileChange(at("d/e/run"), None, b"x", after_mode=0o755),
    )
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_change_with_directories_goes_there_and_back(files: WorkspaceFiles, project: Path) -> None:
    await files.apply(MADE)
    assert (mode(project / "d"), mode(project / "d/e/run")) == (0o700, 0o755)
    await files.apply(MADE.inverse())
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("reached", ["nothing", "directories", "all"])
async def test_an_interrupted_one_is_settled_whole(
    files: WorkspaceFiles, project: Path, reached: str
) -> None:
    await files.keep(MADE)
    if reached != "nothing":
        (project / "d/e").mkdir(parents=True)
    if reached == "all":
        (project / "d/e/run").write_bytes(b"x")
    settled = await settle_change(files, MADE.manifest)
    assert settled.outcome == ("not" if reached == "nothing" else "happened")
    if settled.outcome == "happened":
        assert mode(project / "d/e/run") == 0o755
    else:
        assert list(project.iterdir()) == []


async def test_a_change_of_bits_alone_is_carried_out(files: WorkspaceFiles, project: Path) -> None:
    (project / "f").write_bytes(b"x")
    (project / "f").chmod(0o644)
    bits = Change((FileChange(at("f"), b"x", b"x", 0o644, 0o755),))
    await files.apply(bits)
    assert mode(project / "f") == 0o755
    await files.apply(bits.inverse())
    assert mode(project / "f") == 0o644


async def test_a_failure_after_the_directories_were_made_takes_them_back(
    files: WorkspaceFiles, project: Path
) -> None:
    (project / "file").write_bytes(b"x")
    bad = Change(
        (
            FileChange(at("d"), None, b"", kind="directory"),
            FileChange(at("file/below"), None, b"", kind="directory"),
        )
    )
    with pytest.raises(BlockedPath):
        await files.apply(bad)
    assert [path.name for path in project.iterdir()] == ["file"]


async def test_a_directory_alone_that_others_filled_is_a_conflict(
    files: WorkspaceFiles, project: Path
) -> None:
    (project / "d").mkdir()
    (project / "d/theirs").touch()
    with pytest.raises(Conflict):
        await files.apply(Change((FileChange(at("d"), b"", None, kind="directory"),)))
    assert (project / "d/theirs").exists()
