"""The git program runs within limits."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from repositories import Repo
from toolgate.workspace.git.program import MOST_MEMORY, find_git, start, stop


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process")
async def test_git_has_a_limit_of_memory(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    process = await start((find_git(), "cat-file", "--batch"), {}, repo.root, stdin=True)
    try:
        limit, _ = resource.prlimit(process.pid, resource.RLIMIT_DATA)
        assert 0 < limit <= MOST_MEMORY
    finally:
        await stop(process)
