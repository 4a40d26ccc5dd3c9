"""A hostile submodule runs nothing and leaks nothing through any of `code.*`, wherever its `.git` leads."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from repositories import data, history

from .hostile import SECRET, plunder
from .submodules import NAME, WithSubmodule, arm, calls
from .test_git import unharmed


@pytest.fixture
def repo(tmp_path: Path) -> WithSubmodule:
    return WithSubmodule(tmp_path / "project")


@pytest.mark.parametrize("command", ["status", "diff", "show", "log -p"])
def test_plain_git_walks_into_the_submodule(repo: WithSubmodule, command: str) -> None:
    """A suite whose traps do not work proves nothing."""
    ran = subprocess.run(
        ["git", *command.split()],
        cwd=repo.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
    )
    assert repo.marker.exists()
    assert command != "diff" or SECRET.encode() in ran.stdout


def _as_git_has_it(repo: WithSubmodule) -> None:
    """`.git` is a file that names a directory in `.git/modules`."""


def _a_file_leading_out(repo: WithSubmodule) -> None:
    (repo.root / NAME / ".git").write_text(f"gitdir: {repo.outside.root}/.git\n")


def _a_link_leading_out(repo: WithSubmodule) -> None:
    (repo.root / NAME / ".git").unlink()
    (repo.root / NAME / ".git").symlink_to(repo.outside.root / ".git")


def _all_of_it_a_link(repo: WithSubmodule) -> None:
    shutil.rmtree(repo.root / NAME)
    (repo.root / NAME).symlink_to(repo.outside.root)


def _its_git_directory_a_link(repo: WithSubmodule) -> None:
    shutil.rmtree(repo.modules)
    repo.modules.symlink_to(repo.outside.root / ".git")


def _a_directory_that_borrows(repo: WithSubmodule) -> None:
    """A repository of its own in the mount, whose objects are outside."""
    git = repo.root / NAME / ".git"
    git.unlink()
    shutil.copytree(repo.outside.root / ".git", git)
    shutil.rmtree(git / "objects")
    (git / "objects" / "info").mkdir(parents=True)
    (git / "objects" / "info" / "alternates").write_text(f"{repo.outside.root}/.git/objects\n")
    arm(git, repo.program, f"worktree = {repo.outside.root}")


def _a_pipe(repo: WithSubmodule) -> None:
    (repo.root / NAME / ".git").unlink()
    os.mkfifo(repo.root / NAME / ".git")


def _settings_that_git_refuses(repo: WithSubmodule) -> None:
    repo.worsen()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "trick",
    [
        _as_git_has_it, _a_file_leading_out, _a_link_leading_out, _all_of_it_a_link, _its_git_directory_a_link,
        _a_directory_that_borrows, _a_pipe, _settings_that_git_refuses,
    ],
    ids=lambda trick: trick.__name__.strip("_"),
)  # fmt: skip
async def test_nothing_of_a_submodule_runs_or_leaks(
    repo: WithSubmodule, trick: Callable[[WithSubmodule], None]
) -> None:
    trick(repo)
    async with history(repo.root) as gate:
        good, answers = await plunder(gate, calls())
        shown = await data(gate, "code.show", commit="HEAD")
    assert good > 15, "the repository around it can still be read"
    assert shown["commit"]["files_changed"] == [NAME]
    unharmed(repo, answers)


async def test_a_submodule_armed_in_a_repository_that_is_armed_itself(repo: WithSubmodule) -> None:
    """With `submodule.recurse`, and everything else a repository can set."""
    repo.arm()
    async with history(repo.root) as gate:
        _, answers = await plunder(gate, calls())
    unharmed(repo, answers)
