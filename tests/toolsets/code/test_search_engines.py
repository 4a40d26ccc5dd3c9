"""Whichever engine runs, `code.search` says what a plain rg says."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from toolgate.core.errors import InvalidArgs, TimedOut
from toolgate.core.paths import MountPath
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import concealed, local, program
from toolgate.workspace.search.content import TooMuch, Unequal
from toolgate.workspace.search.query import FoundMatches, SearchQuery
from toolgate.workspace.search.search import TIME_LIMIT, Engine, search
from toolgate.workspace.search.subset import plan

from . import random_search as made
from .planted import stand_in

ROUNDS = 12
PATTERNS = 50
BUSY = 5.0
"""Seconds that a busy machine may take to notice that a time is up."""


def _places(found: FoundMatches) -> set[tuple[object, ...]]:
    return {(each.file, each.line, each.column, each.matched_text) for each in found.matches}


def _shown(mounts: Mounts, name: str) -> bool:
    path = MountPath(f"project:{name}")
    return mounts.rules(path).refuse(path, written=False) is None


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_both_engines_and_a_plain_rg_agree_on_random_patterns_and_trees(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    here = 0
    for number in range(PATTERNS):
        if number % 10 == 0:
            root = tmp_path / str(number)
            root.mkdir()
            made.grow(dice, root, strange=number % 20 == 10)
        query = SearchQuery(made.pattern(dice), dice.random() < 0.5, 10_000, dice.randint(0, 3))
        with Mounts({"project": root}) as mounts:
            expected = made.plain_rg(root, query.pattern, query.case_sensitive)
            if expected is not None:  # rg knows nothing of the mount's rules
                expected = {each for each in expected if _shown(mounts, each[0])}
            try:
                ours = search(mounts, query, engine="local")
                here += 1
            except Unequal:
                ours = None
            if expected is None:
                assert ours is None, query
                with pytest.raises(InvalidArgs):
                    search(mounts, query, engine="rg")
                continue
            theirs = search(mounts, query, engine="rg")
            assert _places(theirs) == expected, query
            assert len(theirs.matches) == len(expected) == theirs.total_matches
            assert ours is None or ours == theirs, query
    assert here >= 15  # the engine in process took part
    assert ROUNDS * PATTERNS >= 500


def test_the_first_matches_in_path_order_are_shown_whichever_engine_runs(
    project: Path, mounts: Mounts
) -> None:
    for name in ("b/1", "a-b/2", "a/3", "a.b/4", "Z/5", "c"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("hit\nno\nhit\n")
    for most in (1, 3, 5, 12, 100):
        query = SearchQuery("hit", max_matches=most, context_lines=1)
        here, there = (search(mounts, query, engine=engine) for engine in ("local", "rg"))
        assert here == there
        order = ["Z/5", "a/3", "a-b/2", "a.b/4", "b/1", "c"]
        assert [match.file for match in here.matches] == [name for name in order for _ in range(2)][:most]
        assert (here.total_matches, here.files_searched, here.truncated) == (12, 6, most < 12)


@pytest.mark.parametrize("engine", ["local", "rg"])
def test_the_five_files_with_most_matches_are_named_also_where_they_are_not_shown(
    project: Path, mounts: Mounts, engine: Engine
) -> None:
    for name, count in {"a": 1, "b": 3, "c": 2, "d": 3, "e": 9, "f": 2, "g": 2}.items():
        (project / name).write_text("hit\n" * count)
    found = search(mounts, SearchQuery("hit", max_matches=1), engine=engine)
    assert found.top == (("e", 9), ("b", 3), ("d", 3), ("c", 2), ("f", 2))
    assert (found.files_matched, [match.file for match in found.matches]) == (7, ["a"])


@pytest.mark.parametrize("engine", ["local", "rg"])
def test_only_the_files_that_match_and_no_lines(project: Path, mounts: Mounts, engine: Engine) -> None:
    for name, count in {"a": 1, "b": 3, "c": 2}.items():
        (project / name).write_text("hit\n" * count)
    for most, cut in ((2, True), (3, False)):
        query = SearchQuery("hit", max_matches=0, top_files=most)
        found = search(mounts, query, engine=engine)
        assert (found.top, found.matches) == ((("b", 3), ("c", 2), ("a", 1))[:most], [])
        assert (found.files_matched, found.total_matches, found.truncated) == (3, 6, cut)


@pytest.mark.parametrize("engine", ["local", "rg"])
def test_matches_of_several_mounts_are_one_answer_that_says_what_was_cut(
    project: Path, tmp_path: Path, engine: Engine
) -> None:
    (tmp_path / "scratch").mkdir()
    for place in (project, tmp_path / "scratch"):
        (place / "a").write_text("hit\nhit\n")
    with Mounts({"project": project, "scratch": tmp_path / "scratch"}) as both:
        for most in (1, 2, 3, 4, 5):
            query = SearchQuery("hit", max_matches=most)
            found = search(both, query, [MountPath("project:."), MountPath("scratch:.")], engine=engine)
            assert [match.file for match in found.matches] == ["a", "a", "scratch:a", "scratch:a"][:most]
            assert (found.total_matches, found.files_matched, found.truncated) == (4, 2, most < 4)


TEXTS = {
    "long lines": ("a" * 5000 + "!\n") * 200,
    "one line": "a" * (4 << 20),
    "no end of lines": "a\n" * (2 << 20),
}
"""The last has a match in every second byte, and is as much as the engine in process takes."""


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "(a*)*c", "(x+x+)+y", r"(\w+\s?)+$", "(.*)(.*)(.*)(.*)Z", "[ab]{0,30}", "(a{1,50}){1,50}$"]
)  # fmt: skip
@pytest.mark.parametrize("text", list(TEXTS))
def test_patterns_that_ruin_others_end_in_time(
    project: Path, mounts: Mounts, pattern: str, text: str
) -> None:
    (project / "long.txt").write_text(TEXTS[text])
    for engine in ("auto", "rg"):
        begun = time.monotonic()
        search(mounts, SearchQuery(pattern), engine=engine)
        assert time.monotonic() - begun < TIME_LIMIT + BUSY


@pytest.mark.parametrize("engine", ["auto", "rg"])
def test_a_file_of_one_line_of_ten_megabytes_gives_a_short_answer(
    project: Path, mounts: Mounts, engine: str
) -> None:
    (project / "one.js").write_bytes(b"x" * 6_000_000 + b"needle" + b"y" * 4_000_000)
    found = search(mounts, SearchQuery("needle"), engine=engine)  # type: ignore[arg-type]
    (match,) = found.matches
    assert (match.line, match.column, match.matched_text) == (1, 6_000_001, "needle")
    assert "needle" in match.line_text
    assert len(match.line_text) < 600


@pytest.mark.parametrize("pattern", ["$", r"\p{Ll}?$"])
def test_a_match_at_the_end_of_a_file_without_a_last_newline_stands_there(
    project: Path, mounts: Mounts, pattern: str
) -> None:
    (project / "end.txt").write_text("one\ntwo ")
    for engine in ("auto", "rg"):
        (match,) = (
            each for each in search(mounts, SearchQuery(pattern), engine=engine).matches if each.line == 2
        )
        assert (match.column, match.matched_text) == (5, "")


def test_large_trees_and_unequal_patterns_go_to_rg(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(local.MAX_FILES + 1):
        (project / f"{number}.txt").write_text("needle\n")
    query = SearchQuery("needle", max_matches=3)
    with pytest.raises(TooMuch):
        search(mounts, query, engine="local")
    found = search(mounts, query)
    assert (found.total_matches, found.files_searched, found.truncated) == (201, 201, True)
    assert search(mounts, SearchQuery(r"\p{Ll}eedle"), [MountPath("project:7.txt")]).total_matches == 1
    monkeypatch.setattr(program, "find_rg", lambda: None)
    with pytest.raises(program.Unavailable, match="not installed"):
        search(mounts, query)
    assert search(mounts, query, [MountPath("project:7.txt")]).total_matches == 1


def test_a_search_whose_time_is_up_kills_rg_and_says_so(
    project: Path, tmp_path: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\necho $$ > " + str(tmp_path / "pid") + "\nexec /bin/sleep 60\n")
    slow.chmod(0o755)
    stand_in(monkeypatch, slow)
    begun = time.monotonic()
    with pytest.raises(TimedOut):
        search(mounts, SearchQuery("a"), engine="rg", seconds=1.0)
    assert time.monotonic() - begun < 1.0 + BUSY
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    "pattern",
    [r"(?i)a", r"\p{L}", "[a&&b]", "(|a)*", "a**", "a{51}", "(?x)a b", r"\B", "[[:alpha:]]", "[]a]", "a{,3}", "{",
     "^*", "(a", "a)", r"\1", "[z-a]", "é"],
)  # fmt: skip
def test_what_the_engines_could_read_differently_is_left_to_rg(pattern: str) -> None:
    assert plan(pattern, case_sensitive=False) is None


@pytest.mark.parametrize(
    "pattern", ["foo", r"def \w+\(", "^import .*$", "a|b", "[^a-c]+x{2,5}", r"\bclass\b"]
)
def test_what_people_usually_search_for_is_answered_in_process(pattern: str) -> None:
    assert plan(pattern, case_sensitive=False) is not None


def test_a_line_with_more_places_than_can_be_said_is_counted_and_the_answer_says_it_is_cut(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concealed, "MAX_OUTPUT", 100_000)
    (project / "one.txt").write_text("é" * 20_000)
    found = search(mounts, SearchQuery(r"\p{L}"))
    assert (found.matches, found.total_matches, found.truncated) == ([], 1, True)
