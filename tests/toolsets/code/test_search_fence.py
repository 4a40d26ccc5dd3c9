"""A name that is swapped for a link while rg walks leads it nowhere, whether or not the names of the mount are known."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import program
from toolgate.workspace.search import search as known
from toolgate.workspace.search.query import SearchQuery
from toolgate.workspace.search.search import search

from .planted import Script, ask_until_known

pytestmark = pytest.mark.usefixtures("at_once")
ANSWERS = 80
PATIENCE = 40.0


@pytest.fixture(autouse=True)
def _landlock() -> None:
    if not program.available():
        pytest.skip("this kernel has no Landlock")


@contextmanager
def swapping(directory: Path, outside: Path) -> Iterator[None]:
    """The directory is a link out half of the time."""
    stop = threading.Event()
    aside = directory.with_name(f"{directory.name}.aside")

    def swap() -> None:
        while not stop.is_set():
            directory.rename(aside)
            directory.symlink_to(outside)
            time.sleep(0.003)
            directory.unlink()
            aside.rename(directory)
            time.sleep(0.003)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("paths", [["aaa", "d"], ["d"], ["."]])
def test_a_directory_swapped_for_a_link_out_gives_neither_names_nor_counts(
    project: Path, tmp_path: Path, mounts: Mounts, paths: list[str]
) -> None:
    outside = tmp_path / "outside"
    for place in (project / "d", project / "aaa", outside):
        place.mkdir(parents=True)
    (project / "aaa/x.txt").write_text("needle\n" * 2)
    (project / "d/same.txt").write_text("needle\n")
    for number in range(400):
        (project / f"d/f{number:03}.txt").write_text("nothing\n")
    for name in ("same.txt", "outside.txt"):
        (outside / name).write_text("needle secret\n" * 100)
    answers = 0
    with swapping(project / "d", outside):
        until = time.monotonic() + PATIENCE
        while answers < ANSWERS and time.monotonic() < until:
            with suppress(CallError):
                found = search(
                    mounts,
                    SearchQuery("needle", max_matches=1),
                    [MountPath.parse(p) for p in paths],
                    engine="rg",
                )
                answers += 1
                assert found.total_matches <= 3
                assert "outside" not in str(found)
    assert answers


def test_behind_the_fence_nothing_else_can_be_opened(project: Path, tmp_path: Path) -> None:
    (project / "in").write_text("in")
    (tmp_path / "out").write_text("out")
    (project / "link").symlink_to(tmp_path / "out")

    def look() -> list[str]:
        found = []
        for path in (project / "in", tmp_path / "out", project / "link", Path("/etc/passwd")):
            with suppress(PermissionError):
                path.read_text()
                found.append(path.name)
        return found

    with held(os.open(project, os.O_RDONLY | os.O_DIRECTORY)) as handle:
        assert program.fenced(look, [handle], "/bin/true") == ["in"]
    assert (tmp_path / "out").read_text() == "out", "it holds for that thread alone"
    with held(os.open(project, os.O_RDONLY | os.O_DIRECTORY)) as handle, pytest.raises(ZeroDivisionError):
        program.fenced(lambda: 1 // 0, [handle], "/bin/true")


@pytest.mark.parametrize(
    "swap",
    [
        "mv d ../gone && ln -s ../outside d",
        "mv d/same.txt ../gone && ln -s ../../outside/same.txt d/same.txt",
    ],
)
def test_where_names_are_known_and_one_is_replaced_meanwhile_rg_is_asked_again_behind_the_fence(
    project: Path, tmp_path: Path, mounts: Mounts, rg_that: Script, swap: str
) -> None:
    (project / "d").mkdir()
    (project / "d/same.txt").write_text("hit\n")
    (project / "a.txt").write_text("hit\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/same.txt").write_text("hit\n" * 9)
    ask_until_known(mounts)
    once = tmp_path / "once"
    rg_that(f'if mkdir {once} 2>/dev/null; then {swap}; fi; exec "$RG" "$@"')
    found = search(mounts, SearchQuery("hit", max_matches=1), engine="rg")
    known.learned(mounts)
    assert once.exists()
    assert (found.total_matches, [match.file for match in found.matches]) == (1, ["a.txt"])
