"""What `git diff` prints applies to the same bytes, and what has been damaged applies as git does or not at all."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from toolgate.core.errors import CallError

from .histories import Pair, by_git, history, pairs, patched
from .mutants import damaged, moved_on

OPTIONS = (
    ("-U3",), ("-M", "--full-index"), ("-U1", "-M30%"), ("-U10", "--full-index"), ("-C", "--find-copies-harder"),
    ("-U2", "--no-renames"), ("-M", "-B", "-U5"), ("--patience", "--inter-hunk-context=4"),
)  # fmt: skip


def made(folder: Path, seed: int, commits: int, *options: str) -> list[Pair]:
    folder.mkdir()
    return pairs(folder, history(random.Random(seed), folder, commits), *options)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(len(OPTIONS)))
def test_what_git_printed_gives_the_identical_tree(tmp_path: Path, seed: int) -> None:
    found = made(tmp_path / "repository", seed, 60, *OPTIONS[seed])
    assert len(found) == 59
    for pair in found:
        assert patched(pair.before, pair.diff) == pair.after


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_diff_applies_as_git_does_or_not_at_all(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    found = made(tmp_path / "repository", 100 + seed, 40, *OPTIONS[seed])
    seen = compare(dice, found, tmp_path, 100)
    assert seen["both"] > 10, seen
    assert seen["neither"] > 20, seen


def compare(dice: random.Random, found: list[Pair], folder: Path, count: int) -> Counter[str]:
    """Never applies where git refuses, never with another result. Where only git applies, we are stricter."""
    seen: Counter[str] = Counter()
    for number in range(count):
        pair = dice.choice(found)
        tree, diff = pair.before, pair.diff
        if dice.random() < 0.4:
            tree = moved_on(dice, tree)
        if tree is pair.before or dice.random() < 0.3:
            diff = damaged(dice, diff)
        theirs = by_git(tree, diff, folder / str(number))
        try:
            ours = patched(tree, diff)
        except CallError as error:
            seen["stricter" if theirs is not None else "neither"] += 1
            seen[f"stricter: {error.message}"] += theirs is not None
            continue
        assert theirs == ours, diff.decode("utf-8", "replace")
        seen["both"] += 1
    return seen
