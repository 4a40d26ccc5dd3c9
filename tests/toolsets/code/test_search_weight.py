"""A search in process cannot be ended, so a pattern that may take many steps a byte is left to rg, which can."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolgate.core.paths import MountPath
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.content import TooMuch
from toolgate.workspace.search.query import EXCLUDED, SearchQuery
from toolgate.workspace.search.search import search, search_at_once
from toolgate.workspace.search.subset import plan

HEAVY = "a" + "[ab]{50}" * 19 + "c"
"""RE2 would need more states than it has room for."""


@pytest.mark.parametrize(
    ("pattern", "light"),
    [
        ("select_for_update", True),
        ("def \\w+", True),
        ("foo.*bar", True),
        (HEAVY, False),
        ("a[ab]{20}c", False),
        ("(one|two|three|four)", False),
    ],
)
def test_plain_and_short_patterns_are_light(pattern: str, light: bool) -> None:
    made = plan(pattern, True)
    assert made is not None
    assert (made.weight == 1) == light


def test_a_heavy_pattern_is_not_searched_for_in_process_where_there_is_much(
    project: Path, mounts: Mounts
) -> None:
    (project / "f").write_text("ab" * 500_000)
    with pytest.raises(TooMuch):
        search(mounts, SearchQuery(HEAVY), engine="local")
    assert search(mounts, SearchQuery("zzz"), engine="local").files_searched == 1


def test_a_heavy_pattern_never_runs_where_its_caller_stands(project: Path, mounts: Mounts) -> None:
    (project / "f").write_text("ab" * 50_000 + "\n")
    paths = (MountPath.parse("."),)
    search(mounts, SearchQuery("zzz"))
    begun = time.process_time()
    assert search_at_once(mounts, SearchQuery(HEAVY), paths, "", EXCLUDED) is None
    assert time.process_time() - begun < 0.2
