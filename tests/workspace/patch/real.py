"""A real history to patch along: the project's own, which is there wherever the project was cloned."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest
from bench.patches import QUIET, cloned, git, raw

from .histories import Tree

PROJECT = Path(__file__).parents[3]
ENOUGH = 500
"""Commits. With fewer, some pairs would come again and again."""


def own_history(folder: Path) -> Path:
    """A clone of the project, to do anything with."""
    if not (PROJECT / ".git").exists():
        pytest.skip("no git history of the project here: it is a copy without one")
    root = cloned(PROJECT, folder)
    if len(found := commits(root)) < ENOUGH:
        pytest.skip(f"no git history of the project here: {len(found)} commits, and {ENOUGH} are wanted")
    return root


def commits(root: Path) -> list[str]:
    """The oldest first. Those that come after are left out, so that a commit to the project changes no test."""
    return git(root, "rev-list", "--reverse", "HEAD").split()[:ENOUGH]


class Trees:
    """The trees of commits, with all that is in them. What two of them share is read once."""

    def __init__(self, root: Path, batch: subprocess.Popen[bytes]) -> None:
        self.root, self.batch = root, batch
        self.blobs: dict[bytes, bytes] = {}
        self.of = lru_cache(maxsize=8)(self._of)

    def _of(self, commit: str) -> Tree:
        found: Tree = {}
        for entry in raw(self.root, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
            head, _, name = entry.partition(b"\t")
            mode, kind, oid = head.split()
            assert kind == b"blob", "the project has a submodule now"
            found[name.decode()] = (self._blob(oid), mode == b"100755")
        return found

    def _blob(self, oid: bytes) -> bytes:
        if oid not in self.blobs:
            assert self.batch.stdin is not None
            assert self.batch.stdout is not None
            self.batch.stdin.write(oid + b"\n")
            self.batch.stdin.flush()
            size = int(self.batch.stdout.readline().split()[2])
            self.blobs[oid] = self.batch.stdout.read(size + 1)[:-1]
        return self.blobs[oid]


@contextmanager
def trees(root: Path) -> Iterator[Trees]:
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=root, env=QUIET, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as batch:
        yield Trees(root, batch)
        assert batch.stdin is not None
        batch.stdin.close()
