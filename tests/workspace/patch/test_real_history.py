"""What `git diff` prints between commits of a real repository, near and far, forwards and backwards: the same tree."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench import patches
from bench.patches import (
    BINARY,
    IDENTICAL,
    OPTIONS,
    QUIET,
    check_out,
    drawn,
    raw,
    tree_on_disk,
    untouched,
)

import toolgate
from sampling import fewer

from .histories import patched
from .mutants import damaged
from .real import commits, own_history, trees

CONFIG: dict[str, Any] = patches.CONFIG | {
    "mounts": {
        "project": {"path": ".", "dotfiles": ["**"], "unblock": ["secrets"]}
    },  # as one of our packages is called
    "scan": {"secret": "allow", "payload": "allow", "hidden": "allow"},  # our tests are full of them
}
MOST = 200_000
"""Bytes of a diff that goes to the disk: every file of it is written as if the power could fail."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return own_history(tmp_path / "ours")


def test_pairs_of_commits_near_and_far_give_the_identical_tree(root: Path) -> None:
    dice = random.Random(1)
    place = {commit: number for number, commit in enumerate(commits(root))}
    seen: set[tuple[str, str]] = set()
    far: list[int] = []
    with trees(root) as at:
        for old, new in drawn(dice, list(place)):
            diff = raw(root, "diff", *dice.choice(OPTIONS), old, new)
            if (old, new) in seen or not diff or BINARY in diff:
                continue
            assert patched(at.of(old), diff) == at.of(new), f"{old} {new}"
            seen.add((old, new))
            far.append(place[old] - place[new])
            if len(seen) == fewer(300, 100):
                break
    assert min(far) < -50
    assert max(far) > 50


async def test_pairs_of_commits_give_the_identical_tree_on_disk_through_the_gate(root: Path) -> None:
    dice = random.Random(2)
    seen: Counter[str] = Counter()
    async with toolgate.open(root, CONFIG, "memory") as gate:
        for old, new in drawn(dice, commits(root)):
            seen[await patches.pair(gate, root, old, new, *dice.choice(OPTIONS), most=MOST)] += 1
            if seen[IDENTICAL] == fewer(25, 8):
                break
    assert not {"refused: not_allowed", "refused: invalid_args"} & set(seen), seen


async def test_a_damaged_diff_does_on_disk_what_git_apply_does_or_leaves_the_tree_untouched(
    root: Path, tmp_path: Path
) -> None:
    dice = random.Random(3)
    twin = patches.cloned(root, tmp_path / "theirs")
    seen: Counter[str] = Counter()
    async with toolgate.open(root, CONFIG, "memory") as gate:
        for old, new in drawn(dice, commits(root)):
            diff = raw(root, "diff", *dice.choice(OPTIONS), old, new)
            if not diff or len(diff) > MOST // 10 or BINARY in diff:
                continue
            for folder in (root, twin):
                check_out(folder, old)
            for _ in range(8):
                seen[await mutant(gate, root, twin, damaged(dice, diff))] += 1
            if seen.total() >= fewer(80, 40):
                break
    assert seen["both"] > fewer(10, 5), seen
    assert seen["neither"] > fewer(20, 10), seen


async def mutant(gate: toolgate.Gate, root: Path, twin: Path, diff: bytes) -> str:
    """The same diff to both, and both as they were again. Where only git applies it, we are stricter."""
    result = await gate.call("fs.patch", {"diff": diff.decode("utf-8", "surrogateescape")})
    anew = ["--recount"] if result.ok and result.data["recounted"] else []
    theirs = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *anew, "-"],
        cwd=twin,
        env=QUIET,
        input=diff,
        capture_output=True,
    )
    if not result.ok:
        untouched(root, diff.decode("utf-8", "replace"))
        if theirs.returncode == 0:
            check_out(twin, "HEAD")
        return "neither" if theirs.returncode else "stricter"
    assert theirs.returncode == 0, theirs.stderr
    assert tree_on_disk(root) == tree_on_disk(twin), diff
    for folder in (root, twin):
        check_out(folder, "HEAD")
    return "both"
