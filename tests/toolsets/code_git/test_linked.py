"""Directories made by `git worktree`: shut unless the owner of the mount says otherwise, and then no way elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repositories import CONFIG, Repo, data, history, refused

OPEN: dict[str, Any] = CONFIG | {"mounts": {"project": {"path": ".", "worktree": True}}}
TOOLS = (
    ("code.diff", {}),
    ("code.log", {}),
    ("code.show", {"commit": "HEAD"}),
    ("code.blame", {"path": "a"}),
)


class Linked(Repo):
    """A working directory of another repository."""

    def __init__(self, root: Path, main: Repo) -> None:
        main.git("worktree", "add", "-q", "-b", root.name, str(root))
        self.root, self.main, self.minutes = root, main, 100

    @property
    def own(self) -> Path:
        return self.main.root / ".git" / "worktrees" / self.root.name


@pytest.fixture
def linked(tmp_path: Path) -> Linked:
    main = Repo(tmp_path / "main")
    for number in range(5):
        main.commit(f"commit {number}", {"a": f"{number}\n" * 3, "b": "b\n" * number})
    return Linked(tmp_path / "feature", main)


async def hashes(gate: Any, **args: Any) -> list[str]:
    return [commit["hash"] for commit in (await data(gate, "code.log", **args))["commits"]]


async def test_it_is_shut_and_the_refusal_says_how_a_human_opens_it(linked: Linked) -> None:
    async with history(linked.root) as gate:
        for tool, args in TOOLS:
            assert await refused(gate, tool, **args) == "unavailable"
        error = (await gate.call("code.log")).error
        assert error is not None
        assert "`worktree: true`" in error.fix


async def test_it_has_the_history_branch_and_index_that_git_shows_there(linked: Linked) -> None:
    linked.commit("on the branch", {"a": "branch\n"})
    linked.main.commit("on main", {"c": "main\n"})
    linked.write({"b": "not committed\n"})
    async with history(linked.root, OPEN) as gate:
        assert await hashes(gate) == linked.git("log", "--format=%H").split()
        [changed] = (await data(gate, "code.diff"))["files"]
        assert changed["path"] == "b"
        [line] = (await data(gate, "code.blame", path="a"))["lines"]
        assert line["commit"]["hash"] == linked.head()
        shown = await data(gate, "code.show", commit="main")
        assert shown["commit"]["hash"] == linked.main.head()
        linked.commit("while the gate is open", {"b": "committed\n"})
        assert await hashes(gate) == linked.git("log", "--format=%H").split()
        assert (await data(gate, "code.diff"))["files"] == []


async def test_links_may_be_written_as_relative_paths(linked: Linked) -> None:
    (linked.root / ".git").write_text("gitdir: ../main/.git/worktrees/feature\n")
    (linked.own / "gitdir").write_text("../../../../feature/.git\n")
    async with history(linked.root, OPEN) as gate:
        assert await hashes(gate) == linked.git("log", "--format=%H").split()


async def test_a_link_that_is_taken_back_while_the_gate_is_open_is_followed_no_more(linked: Linked) -> None:
    async with history(linked.root, OPEN) as gate:
        assert await hashes(gate)
        shutil.rmtree(linked.own)
        assert await refused(gate, "code.log") == "unavailable"


def _never_linked(linked: Linked) -> None:
    stranger = Repo(linked.root.parent / "stranger")
    stranger.commit("private", {"secret": "secret\n"})
    (linked.root / ".git").write_text(f"gitdir: {stranger.root / '.git'}\n")


def _linked_to_another_directory(linked: Linked) -> None:
    other = Linked(linked.root.parent / "other", linked.main)
    (linked.root / ".git").write_text(f"gitdir: {other.own}\n")


def _nothing_there(linked: Linked) -> None:
    (linked.root / ".git").write_text("gitdir: /nowhere/.git/worktrees/feature\n")


def _no_link_at_all(linked: Linked) -> None:
    (linked.root / ".git").write_text("something else\n")


def _common_directory_elsewhere(linked: Linked) -> None:
    (linked.own / "commondir").write_text("../../../../stranger/.git\n")


def _own_directory_is_a_link(linked: Linked) -> None:
    moved = linked.own.rename(linked.root.parent / "moved")
    linked.own.symlink_to(moved)


def _named_by_a_link(linked: Linked) -> None:
    (linked.root.parent / "alias").symlink_to(linked.root / ".git")
    (linked.own / "gitdir").write_text(f"{linked.root.parent / 'alias'}\n")


@pytest.mark.parametrize(
    "arm",
    [
        _never_linked, _linked_to_another_directory, _nothing_there, _no_link_at_all, _common_directory_elsewhere,
        _own_directory_is_a_link, _named_by_a_link,
    ],
)  # fmt: skip
async def test_a_file_that_names_what_does_not_name_it_back_leads_nowhere_and_tells_nothing(
    linked: Linked, arm: Callable[[Linked], None]
) -> None:
    arm(linked)
    async with history(linked.root, OPEN) as gate:
        for tool, args in TOOLS:
            result = await gate.call(tool, args)
            assert result.error is not None
            assert result.error.message == (
                ".git is a file, and the repository that it names does not name this working directory"
            )


async def test_a_file_that_names_another_directory_each_time_leaves_no_handles_open(linked: Linked) -> None:
    link = linked.root / ".git"
    written = link.read_text()
    async with history(linked.root, OPEN) as gate:
        assert await hashes(gate)
        before = len(os.listdir("/dev/fd"))
        for number in range(20):
            (linked.root.parent / f"other{number}").mkdir()
            link.write_text(f"gitdir: {linked.root.parent / f'other{number}'}/worktrees/feature\n")
            assert await refused(gate, "code.log") == "unavailable"
        link.write_text(written)
        assert await hashes(gate)
        assert len(os.listdir("/dev/fd")) <= before


async def test_a_directory_below_the_mount_is_no_linked_one(linked: Linked) -> None:
    async with history(linked.root.parent, OPEN) as gate:
        assert await refused(gate, "code.log", path="feature/a") == "unavailable"


async def test_links_in_the_objects_of_its_repository_are_refused(linked: Linked, tmp_path: Path) -> None:
    objects = linked.main.root / ".git" / "objects"
    moved = objects.rename(tmp_path / "objects")
    objects.symlink_to(moved)
    async with history(linked.root, OPEN) as gate:
        assert not (await gate.call("code.log")).ok
