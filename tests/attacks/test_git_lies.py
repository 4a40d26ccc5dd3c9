"""What a repository says of its own history that is not so: replaced commits, cut-off parents, another's refs and objects.

Each is shown to work on plain git first. History is told as the commits have it, and nothing is fetched or borrowed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from repositories import data, history, refused

from .hostile import SECRET, Hostile, calls, plunder
from .test_git import unharmed

PLAIN = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
REVISIONS = ("HEAD", "HEAD~1", "HEAD~3", "main", "outside")


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path / "project")


def plain(repo: Hostile, *args: str) -> str:
    ran = subprocess.run(
        ["git", *args], cwd=repo.root, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, env=PLAIN
    )
    return ran.stdout.decode()


async def told(repo: Hostile) -> list[str]:
    async with history(repo.root) as gate:
        found = await data(gate, "code.log")
        _, answers = await plunder(gate, calls(revisions=REVISIONS))
    unharmed(repo, answers)
    return [commit["message"].strip() for commit in found["commits"]]


TRUE = ["and back", "rename over the fence, both ways", "commit 2", "commit 1", "commit 0"]


async def test_a_commit_that_is_replaced_is_told_as_it_is(hostile: Hostile) -> None:
    lie = hostile.git("commit-tree", "HEAD^{tree}", "-m", "a lie").strip()
    hostile.git("replace", "HEAD", lie)
    assert plain(hostile, "log", "--format=%s").splitlines() == ["a lie"]
    assert await told(hostile) == TRUE


async def test_parents_that_are_cut_off_by_a_graft_are_told(hostile: Hostile) -> None:
    (hostile.root / ".git" / "info").mkdir(exist_ok=True)
    (hostile.root / ".git" / "info" / "grafts").write_text(hostile.head() + "\n")
    assert plain(hostile, "log", "--format=%s").splitlines() == ["and back"]
    assert await told(hostile) == TRUE


async def test_refs_and_objects_of_another_repository_are_not_taken_for_its_own(hostile: Hostile) -> None:
    (hostile.root / ".git" / "commondir").write_text(f"{hostile.outside.root}/.git\n")
    assert SECRET in plain(hostile, "show", "main:loot.txt")
    assert await told(hostile) == TRUE


async def test_a_missing_object_is_not_fetched(hostile: Hostile) -> None:
    """As in a partial clone, whose remote is a program."""
    lost = hostile.git("rev-parse", "HEAD~3:a.txt").strip()
    (hostile.root / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    script = Path(hostile.program)
    script.write_text(f"#!/bin/sh\ntouch {hostile.marker}\n")
    script.chmod(0o755)
    for setting, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{script}", "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        hostile.git("config", setting, value)
    plain(hostile, "show", "HEAD~3")
    assert hostile.marker.exists()
    hostile.marker.unlink()
    async with history(hostile.root) as gate:
        _, answers = await plunder(gate, calls(revisions=REVISIONS))
        assert await refused(gate, "code.show", commit="HEAD~3") == "failed"
        assert (await gate.call("code.show", {"commit": "HEAD"})).ok
    unharmed(hostile, answers)
