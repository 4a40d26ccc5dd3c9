"""Wrong counts in hunk headers: what was meant is applied, as `git apply --recount` does, or nothing."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from sampling import fewer
from toolgate.core.errors import CallError
from toolgate.workspace.patch.parse import recounted

from .histories import by_git, history, pairs, patched

_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
HEAD = "--- a/x\n+++ b/x\n"
RIGHT = HEAD + "@@ -1,3 +1,4 @@ def f():\n a\n-b\n+B\n+C\n c\n"


@pytest.mark.parametrize("counts", ["-1,9 +1,9", "-1 +1", "-1,2 +1,2", "-1,3 +1,3", "-1,30 +1,40"])
def test_the_counts_follow_the_lines_and_all_else_stays(counts: str) -> None:
    assert recounted(RIGHT.replace("-1,3 +1,4", counts)) == (RIGHT, 1)
    assert recounted(RIGHT) == (RIGHT, 0)


def test_a_hunk_ends_where_the_next_hunk_file_or_text_begins() -> None:
    wrong = RIGHT.replace("+1,4", "+1,7")
    second = "@@ -9,2 +10,2 @@\n x\n-y\n+Y\n"
    for follows in (
        second + " z\n", "--- a/y\n+++ b/y\n" + second, "diff --git a/z b/z\nnew file mode 100644\n",
        "\n--- a/y\n+++ b/y\n" + second, "-- \n2.43.0\n",
    ):  # fmt: skip
        mended, count = recounted(wrong + follows)
        assert mended.startswith(RIGHT), follows
        assert count == 1 + (follows == second + " z\n")


def test_a_hunk_that_may_have_been_cut_off_is_left_as_it_is() -> None:
    cut = HEAD + "@@ -1,6 +1,6 @@\n a\n-b\n+B\n"
    assert recounted(cut) == (cut, 0)
    assert recounted(cut + " c\n")[1] == 1, "with context after its changes they are whole"


def test_empty_lines_at_the_end_belong_to_the_hunk_if_its_header_counts_them() -> None:
    counted = HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n"
    assert recounted(counted) == (counted, 0)
    assert recounted(RIGHT.replace("+1,4", "+1,5") + "\n\n") == (RIGHT + "\n\n", 1)


def _miscounted(dice: random.Random, found: re.Match[bytes]) -> bytes:
    old, new = (dice.choice((0, 0, 1, 2, -1, 5)) + int(found[group] or 1) for group in (2, 4))
    return b"@@ -%b,%d +%b,%d @@" % (found[1], max(old, 0), found[3], max(new, 0))


def test_random_diffs_with_wrong_counts_give_what_git_gives_or_nothing(tmp_path: Path) -> None:
    dice = random.Random(7)
    folder = tmp_path / "repository"
    folder.mkdir()
    found = pairs(folder, history(dice, folder, fewer(120, 40)), "-U3", "--no-renames")
    applied = refused = 0
    for number, pair in enumerate(found):
        diff = _HEADER.sub(lambda match: _miscounted(dice, match), pair.diff)
        mended, _ = recounted(diff.decode())
        try:
            ours = patched(pair.before, mended.encode())
        except CallError:
            refused += 1
            continue
        applied += 1
        assert ours == pair.after, diff.decode()
        if number % 4 == 0:
            theirs = by_git(pair.before, diff, tmp_path / str(number), "--recount")
            assert theirs in (None, ours), diff.decode()
    assert applied > 4 * refused, (applied, refused)
