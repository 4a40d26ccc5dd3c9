"""Kill -9 at every step of a change of files, directories and modes: it is old or new, and settled as a whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolgate.core.change import Change
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.write import settle_change

from .writer_to_kill import CHANGES

Tree = dict[str, tuple[int, bytes | None]]
MOST = 200
"""More steps than any of the changes takes; a bound, should none ever come to its end."""


def tree(root: Path) -> Tree:
    """Everything below, leftovers included, with modes; None is a directory."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode & 0o777,
            None if path.is_dir() else path.read_bytes(),
        )
        for path in sorted(root.rglob("*"))
    }


def build(root: Path, made: Change) -> None:
    """The tree that the change starts from."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    there = [file for file in made.files if file.before is not None]
    for file in sorted(there, key=lambda file: (file.kind != "directory", file.path)):
        path = root / file.path.relative
        path.mkdir() if file.kind == "directory" else path.write_bytes(file.before or b"")
        path.chmod(0o644 if file.before_mode is None else file.before_mode)


@pytest.mark.parametrize("way", list(CHANGES))
async def test_a_writer_killed_at_any_step_leaves_old_or_new_and_is_settled(tmp_path: Path, way: str) -> None:
    made, root = CHANGES[way], tmp_path / "project"
    build(root, made.inverse())
    new = tree(root)
    build(root, made)
    old = tree(root)
    endings = set()
    program = [sys.executable, str(Path(__file__).with_name("writer_to_kill.py")), str(tmp_path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forker:
        assert forker.stdin is not None
        assert forker.stdout is not None
        for steps in range(MOST):
            build(root, made)
            forker.stdin.write(f"{way} {steps}\n")
            forker.stdin.flush()
            ended = forker.stdout.readline().strip()
            assert nothing_is_torn(tree(root), old, new)
            settled = await settle(tmp_path, root)
            endings.add(settled)
            assert settled[0] in ("happened", "not")
            assert tree(root) == (new if settled[0] == "happened" else old), (steps, settled)
            if ended != "killed":
                break
        forker.stdin.close()
    assert (ended, tree(root)) == ("ended 0", new)
    assert {"interrupted" in why for _, why in endings} == {True, False}


async def settle(base: Path, root: Path) -> tuple[str, str]:
    with Mounts({"project": root}) as mounts:
        files = WorkspaceFiles(mounts, Images(base / "images"), base)
        outcome, why = await settle_change(files, json.loads((base / "journal").read_text()))
        return outcome, why


def nothing_is_torn(found: Tree, old: Tree, new: Tree) -> bool:
    """Every file that has one of the names has one of its two contents."""
    for name, (_, content) in found.items():
        known = [tree[name][1] for tree in (old, new) if name in tree]
        if known and content is not None and content not in known:
            return False
    return True
