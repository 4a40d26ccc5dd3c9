"""Trees whose names are known: rg is told paths instead of patterns, and the answer is the same whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules, Named
from toolgate.policy.model import MountSpec
from toolgate.workspace import inotify, watch
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import names
from toolgate.workspace.search import search as known
from toolgate.workspace.search.query import EXCLUDED, SearchQuery
from toolgate.workspace.search.search import search
from toolgate.workspace.staged import TEMPORARY
from toolgate.workspace.watch import MAX_TREES

from .planted import FILES, Script, Told, ask, ask_until_known, patterns, plant

pytestmark = pytest.mark.usefixtures("at_once")


def test_a_tree_that_is_searched_again_is_learned_and_rg_is_told_paths(
    project: Path, mounts: Mounts, told: Told
) -> None:
    plant(project)
    found = ask_until_known(mounts)
    assert [patterns(args) for args in told] == [True, True, False]
    assert "--glob=!/a/My-Private-Key.txt" in told[-1]
    assert sorted(match.file for match in found.matches) == [
        ".github/w.yml", ".gitignore", "a.py", "a/.editorconfig", "a/b/c.py", "b/x.txt",
    ]  # fmt: skip
    assert found.files_searched == 6
    assert found == search(mounts, SearchQuery("hit"), engine="local")


@pytest.mark.parametrize(
    "files",
    [
        "",
        "*.py",
        "id_rsa*",
        "*.{pem,key,txt}",
        "a/**",
        ".*",
        "**/*.py",
        "a/b/*.py",
        ".github/**",
        ".github/*.yml",
        "b/x.txt",
        "{a,b}/*",
    ],
)
def test_whoever_chooses_files_learns_nothing_of_those_that_are_shut(
    project: Path, mounts: Mounts, files: str
) -> None:
    plant(project)
    before = ask(mounts, files=files)
    assert ask_until_known(mounts, files=files) == before
    assert before == search(mounts, SearchQuery("hit"), files=files, engine="local")


def test_a_path_within_a_known_tree_is_known_too(project: Path, mounts: Mounts, told: Told) -> None:
    plant(project)
    ask_until_known(mounts)
    for paths in (["a"], ["a", "b"], ["a/b"]):
        asked = [MountPath(f"project:{path}") for path in paths]
        found = ask(mounts, paths=asked)
        assert not patterns(told[-1])
        assert found == search(mounts, SearchQuery("hit"), asked, engine="local")


def test_who_looks_into_what_is_usually_left_out_is_told_patterns(
    project: Path, mounts: Mounts, told: Told
) -> None:
    plant(project, [*FILES, "node_modules/id_rsa"])
    ask_until_known(mounts)
    more = (*EXCLUDED, "b")
    assert ask(mounts, excluded=more).files_searched == 4
    assert not patterns(told[-1])
    assert ask(mounts, excluded=()).files_searched == 7
    assert patterns(told[-1])
    assert ask(mounts, paths=[MountPath("project:node_modules")]).files_searched == 1
    assert patterns(told[-1])
    assert ask(mounts, paths=[MountPath("project:a"), MountPath("project:node_modules")]).files_searched == 3
    assert patterns(told[-1])


@pytest.mark.parametrize("name", ["id_dsa", "a/x.PEM", ".secret-thing", "a/b/credentials.json"])
def test_a_shut_name_that_comes_later_is_left_out(
    project: Path, mounts: Mounts, told: Told, name: str
) -> None:
    plant(project)
    before = ask_until_known(mounts)
    plant(project, [name])
    assert ask(mounts) == before
    assert f"--glob=!/{name}" in told[-1]


def test_a_shut_name_that_comes_while_rg_runs_is_not_counted(
    project: Path, mounts: Mounts, told: Told, rg_that: Script
) -> None:
    plant(project)
    before = ask_until_known(mounts)
    rg_that('echo hit > id_rsa_new\nexec $RG "$@"\n')
    told.clear()
    assert ask(mounts) == before
    assert [patterns(args) for args in told] == [False, True]


def test_a_search_that_found_all_does_not_fail_for_want_of_time_to_count_again(
    project: Path, mounts: Mounts, told: Told, rg_that: Script
) -> None:
    plant(project)
    before = ask_until_known(mounts)
    rg_that('sleep 2; echo hit > .swp$$\nexec $RG "$@"\n')
    told.clear()
    found = ask(mounts, seconds=5.0)
    assert (found.matches, found.total_matches, len(told)) == (before.matches, before.total_matches, 1)


def test_an_rg_that_is_stopped_counts_no_file_that_is_shut(
    project: Path, mounts: Mounts, rg_that: Script
) -> None:
    plant(project)
    ask_until_known(mounts)
    rg_that('echo hit > id_rsa_$$\n$RG "$@"\nexec sleep 30\n')
    found = ask(mounts, seconds=4.0)
    assert (found.truncated, found.files_searched) == (True, 6)


@pytest.mark.parametrize("engine", ["auto", "rg"])
def test_a_mistake_in_a_pattern_is_told_also_where_names_are_known(
    project: Path, mounts: Mounts, told: Told, engine: Any
) -> None:
    plant(project)
    ask_until_known(mounts)
    with pytest.raises(InvalidArgs, match="pattern cannot be searched"):
        search(mounts, SearchQuery("(hit"), engine=engine)
    ask(mounts)
    assert not patterns(told[-1])


def test_what_is_mounted_into_a_known_mount_ends_what_was_known(
    project: Path, mounts: Mounts, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(project)
    ask_until_known(mounts)
    assert not patterns(told[-1])
    before = watch.mount_changes()
    monkeypatch.setattr(watch, "mount_changes", lambda: before + 1)
    ask(mounts)
    assert patterns(told[-1])


def test_proofs_of_the_cache_do_not_push_out_what_is_known(project: Path, mounts: Mounts, told: Told) -> None:
    plant(project)
    ask_until_known(mounts)
    handle = os.open(project, os.O_RDONLY)
    for _ in range(MAX_TREES + 1):
        mounts.watches.begin(handle, ".", lambda *_: True)
    os.close(handle)
    ask(mounts)
    assert not patterns(told[-1])


def test_a_search_goes_on_where_nothing_can_be_learned_for_want_of_handles(
    project: Path, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(project)
    ask(mounts)

    def full(handle: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(known.os, "dup", full)
    assert ask(mounts).files_searched == 6


def test_a_new_directory_is_searched_at_once_and_learned_later(
    project: Path, mounts: Mounts, told: Told
) -> None:
    plant(project)
    ask_until_known(mounts)
    plant(project, ["new/x.py", "new/id_rsa"])
    assert ask(mounts).files_searched == 7
    assert patterns(told[-1])
    known.learned(mounts)
    assert ask(mounts).files_searched == 7
    assert not patterns(told[-1])


def test_more_new_names_than_the_queue_holds_end_what_was_known(
    project: Path, mounts: Mounts, told: Told
) -> None:
    plant(project)
    ask_until_known(mounts)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(most + 10):  # the queue joins equal neighbours: two names in turn
        name = project / f"b/{number % 2}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)
    plant(project, ["id_ed25519"])
    assert ask(mounts).files_searched == 6
    assert patterns(told[-1])


def _no_queue(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "begin", lambda: None)


def _elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "local", lambda handle: False)


def _few_watches(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "most_watches", lambda: 8)


def _much_shut(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(project, [f".x{number}" for number in range(names.MAX_SHUT)])


def _unspeakable(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(os.fsdecode(os.fsencode(project) + b"/\xff.pem"))).write_text("hit\n")


def _long(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(project, [f"{'d' * 200}/.{number}" for number in range(50)])


def _deep(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MAX_DEPTH", 2)


def _many_names(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MAX_NAMES", 5)


@pytest.mark.parametrize(
    "spoil", [_no_queue, _elsewhere, _few_watches, _many_names, _much_shut, _unspeakable, _long, _deep]
)
def test_what_cannot_be_known_is_searched_by_patterns(
    project: Path,
    mounts: Mounts,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    plant(project)
    spoil(project, monkeypatch)
    found = ask_until_known(mounts)
    assert all(patterns(args) for args in told)
    assert found.files_searched == 6


def test_where_watching_is_turned_off_nothing_is_learned(project: Path, told: Told) -> None:
    plant(project)
    with Mounts({"project": project}, watch=False) as mounts:
        ask_until_known(mounts)
    assert all(patterns(args) for args in told)


def test_other_rules_know_nothing_of_what_was_learned_by_these(project: Path, told: Told) -> None:
    plant(project)
    rules = [MountRules.all_of({"project": MountSpec(path=".")}, Named())]
    with Mounts({"project": project}, rules=lambda: rules[-1]) as mounts:
        ask_until_known(mounts)
        assert not patterns(told[-1])
        rules.append(MountRules.all_of({"project": MountSpec(path=".", hidden=("b",))}, Named()))
        assert ask(mounts).files_searched == 5
        assert patterns(told[-1])


def test_a_mount_is_heard_of(tmp_path: Path) -> None:
    """In a namespace of its own, which ends with the program."""
    (tmp_path / "a").mkdir()
    code = (
        "import subprocess, sys; from toolgate.workspace import watch\n"
        "first = watch.mount_changes(); assert watch.mount_changes() == first\n"
        "subprocess.run(['mount', '--bind', sys.argv[1], sys.argv[1]], check=True)\n"
        "assert watch.mount_changes() != first; first = watch.mount_changes(); assert watch.mount_changes() == first"
    )
    subprocess.run(
        ["unshare", "-m" if os.geteuid() == 0 else "-rm", sys.executable, "-c", code, str(tmp_path / "a")],
        check=True,
    )


def test_learning_ends_with_its_gate(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(project)
    reached, go = threading.Event(), threading.Event()
    real = inotify.add

    def add(*args: Any) -> int | None:
        reached.set()
        go.wait(10)
        return real(*args)

    monkeypatch.setattr(inotify, "add", add)
    watch.mount_changes()  # opens a handle of its own, once in a process
    before = _handles()
    with Mounts({"project": project}) as mounts:
        ask(mounts)
        ask(mounts)
        assert reached.wait(10)
    go.set()
    known.learned(mounts)
    assert _handles() == before


def _handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_writes_of_ours_do_not_end_what_is_known(project: Path, mounts: Mounts, told: Told) -> None:
    """Each makes a file of a name that is shut, beside its goal: more of them than rg can be told of."""
    plant(project)
    ask_until_known(mounts)
    for number in range(names.MAX_SHUT + 10):
        temporary = project / f"b/{TEMPORARY}{number:012x}"
        temporary.write_text("hit\n")
        temporary.replace(project / "b/y.txt")
    (project / f"b/{TEMPORARY}left").write_text("hit\n")
    found = ask(mounts)
    assert not patterns(told[-1])
    assert sorted(match.file for match in found.matches) == [
        ".github/w.yml", ".gitignore", "a.py", "a/.editorconfig", "a/b/c.py", "b/x.txt", "b/y.txt",
    ]  # fmt: skip
