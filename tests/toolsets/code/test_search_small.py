"""A search that was small and quick is made where its caller stands; whatever else it may be by then, in a thread."""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import toolgate
from toolgate.core.paths import MountPath
from toolgate.workspace import inotify
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import local, search, selection
from toolgate.workspace.search.content import matcher
from toolgate.workspace.search.query import EXCLUDED, FoundMatches, SearchQuery
from toolgate.workspace.search.selection import Selection, opened

from .test_search import CONFIG

ROOT = (MountPath("project:."),)
WHOLE = (ROOT, "", EXCLUDED)
UNCACHED = CONFIG | {"cache": {"bytes": 0}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as quick, on a machine that has other things to do."""
    monkeypatch.setattr(local, "QUICK", 10.0)
    monkeypatch.setattr(search, "QUICK", 10.0)


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each search in process: whether it held up the event loop."""
    seen: list[bool] = []
    real = local.Local.search

    def watched(self: local.Local, starts: Any) -> FoundMatches:
        seen.append(threading.current_thread() is threading.main_thread())
        return real(self, starts)

    monkeypatch.setattr(local.Local, "search", watched)
    return seen


async def test_the_second_search_of_a_small_tree_needs_no_thread(
    project: Path, on_the_loop: list[bool]
) -> None:
    (project / "a.py").write_text("hit\n")
    async with toolgate.open(project, UNCACHED, "memory") as gate:
        first = await gate.call("code.search", {"pattern": "hit"})
        (project / "b.py").write_text("hit too\n")
        second = await gate.call("code.search", {"pattern": "too"})
        other = await gate.call("code.search", {"pattern": "hit", "file_pattern": "*.py"})
    assert on_the_loop == [False, True, False]
    assert [result.data["total_matches"] for result in (first, second, other)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("more/{}.txt", "hit\n"),
        ("one{:.0}.txt", "hit\n" + "x" * local.BYTES),
    ],
)
async def test_what_has_grown_or_changed_is_searched_in_a_thread_again(
    project: Path, on_the_loop: list[bool], name: str, content: str
) -> None:
    (project / "a.txt").write_text("hit\n")
    async with toolgate.open(project, UNCACHED, "memory") as gate:
        await gate.call("code.search", {"pattern": r"\bhit"})
        (project / "more").mkdir()
        for number in range(local.FILES + 1):
            (project / name.format(str(number))).write_text(content)
        after = [await gate.call("code.search", {"pattern": r"\bhit"}) for _ in range(2)]
    names = {name.format(str(number)) for number in range(local.FILES + 1)}
    assert [result.data["files_matched"] for result in after] == [1 + len(names)] * 2
    assert on_the_loop == [False, True, False, False]  # given up once, then not tried any more


@pytest.mark.parametrize(
    ("pattern", "content"), [("x", "x\n" * (local.HITS + 1)), (r"\bx", "é x\n")], ids=["hits", "unequal"]
)
async def test_a_pattern_that_is_more_work_than_the_last_is_given_up(
    project: Path, on_the_loop: list[bool], pattern: str, content: str
) -> None:
    (project / "a.txt").write_text(content)
    async with toolgate.open(project, UNCACHED, "memory") as gate:
        await gate.call("code.search", {"pattern": "needle"})
        found = await gate.call("code.search", {"pattern": pattern})
    assert found.data["total_matches"] == content.count("x")
    assert on_the_loop == [False, True, False]


@pytest.mark.parametrize("engine", ["local", "rg"])
def test_what_is_searched_at_once_says_what_both_engines_say(
    project: Path, mounts: Mounts, engine: Any
) -> None:
    for name in ("b/1.txt", "a/2.txt", ".env", "secrets.json", "node_modules/x.txt"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("hit\nno\nhit\n")
    query = SearchQuery("hit", max_matches=3)
    assert search.search_at_once(mounts, query, ROOT, "", EXCLUDED) is None
    expected = search.search(mounts, query, engine=engine)
    assert search.search_at_once(mounts, query, ROOT, "", EXCLUDED) == expected
    assert expected.truncated


def test_nothing_is_searched_at_once_where_others_could_keep_it_waiting(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("hit\n")
    monkeypatch.setattr(inotify, "local", lambda handle: False)  # a network file system
    search.search(mounts, SearchQuery("hit"))
    assert local.search_small(mounts, SearchQuery("hit"), WHOLE) is None


def test_a_tree_with_another_file_system_in_it_is_never_searched_at_once(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("hit\n")
    real = selection.SearchEntry.status

    def status(self: selection.SearchEntry) -> Any:
        return SimpleNamespace(st_dev=-1) if self.directory else real(self)

    monkeypatch.setattr(selection.SearchEntry, "status", status)
    search.search(mounts, SearchQuery("hit"))
    assert local.search_small(mounts, SearchQuery("hit"), WHOLE) is None


def test_a_search_that_took_long_is_not_expected_to_be_quick(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("hit\n")
    monkeypatch.setattr(search, "QUICK", 0.0)
    search.search(mounts, SearchQuery("hit"))
    assert local.search_small(mounts, SearchQuery("hit"), WHOLE) is None


def changed(root: Path, dice: random.Random) -> None:
    """Something that anybody may do to a tree, with the times of its directories put back where that can be done."""
    times = {each: each.stat() for each in (root, *root.rglob("*")) if each.is_dir()}
    here = dice.choice(list(times))
    name = here / dice.choice("abcd")
    other = dice.choice(list(times)) / dice.choice("abcd")
    match dice.randrange(5):
        case 0 if not name.exists():
            name.mkdir()
        case 1 if name.is_dir():
            shutil.rmtree(name)
        case 2 if name.is_file():
            name.unlink()
        case 3 if name.exists() and not other.exists() and not other.is_relative_to(name):
            name.rename(other)
        case _ if not name.is_dir():
            draft = root / "draft"
            draft.write_text("hit\n" * dice.randrange(3))
            draft.rename(name)
    for each, was in times.items():
        with contextlib.suppress(OSError):
            os.utime(each, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_of_directories_is_never_older_than_they_are(project: Path, seed: int) -> None:
    dice = random.Random(seed)
    for name in ("a", "b/a", "b/c/d", "d/a/b/c"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")
    query, known = SearchQuery("hit"), 0
    with Mounts({"project": project}) as mounts:
        search.search(mounts, query)
        memory = local._known[mounts][WHOLE][1]
        for _ in range(60):
            again = search.search_at_once(mounts, query, (), "", EXCLUDED)
            with opened(mounts, *WHOLE) as groups:
                assert again == local.Local(matcher("hit", False), query, math.inf).search(groups[0])
            known += len(memory)
            changed(project, dice)
            time.sleep(dice.choice((0, 0, 0.06)))  # some come at once, others after what is there has rested
    assert known > 60, "it was remembered, again and again"


@pytest.mark.parametrize(
    ("counts_seconds", "age_ms", "kept"), [(False, 5, 0), (False, 100, 1), (True, 100, 0), (True, 2100, 1)]
)
def test_a_directory_is_remembered_when_no_later_change_can_have_the_same_time(
    project: Path, monkeypatch: pytest.MonkeyPatch, counts_seconds: bool, age_ms: int, kept: int
) -> None:
    changed = 1_700_000_000_000_000_000 + (not counts_seconds)
    monkeypatch.setattr(selection, "time", SimpleNamespace(time_ns=lambda: changed + age_ms * 1_000_000))
    status = SimpleNamespace(st_dev=1, st_ino=2, st_ctime_ns=changed)
    monkeypatch.setattr(
        selection, "os", SimpleNamespace(fstat=lambda _: status, scandir=os.scandir, fsencode=os.fsencode)
    )
    memory: selection.Memory = {}
    handle = os.open(project, os.O_RDONLY)
    try:
        names = selection.Walk(cast(Selection, None), 10, memory=memory)._names(handle)
    finally:
        os.close(handle)
    assert list(memory.values()) == [(changed, len(os.listdir(project)), tuple(names))] * kept
