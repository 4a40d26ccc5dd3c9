"""The commit-graph beside the view: it is used, it is never wrong, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from repositories import Repo
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules
from toolgate.policy.model import MountSpec
from toolgate.workspace.git.history import Wanted, log
from toolgate.workspace.git.repositories import Repositories, Repository
from toolgate.workspace.mounts import Mounts

HERE = MountPath("project:.")


@asynccontextmanager
async def opened(root: Path, cache: Path) -> AsyncIterator[Repositories]:
    rules = {"project": MountRules.of("project", MountSpec(path="."))}
    with Mounts({"project": root}) as mounts:
        repositories = Repositories(mounts, cache, lambda: rules)
        try:
            yield repositories
        finally:
            await repositories.close()


async def logged(repository: Repository, path: str) -> list[str]:
    tip = repository.view.refs.head_id
    assert tip is not None
    found, _ = await log(
        repository.view, repository.batch, tip.decode(), Wanted(path, 100), repository.visible
    )
    return [entry.commit.hash for entry in found]


def made(root: Path) -> Repo:
    repo = Repo(root)
    for number in range(12):
        repo.commit(f"commit {number}", {f"f{number % 4}": f"{number}\n"})
    return repo


def graphs(cache: Path) -> list[Path]:
    return list(cache.rglob("commit-graph"))


async def test_a_graph_is_built_outside_the_repository(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with opened(repo.root, tmp_path / "cache") as repositories:
        repository = await repositories.at(HERE)
        repository.graph.want()
        assert graphs(tmp_path / "cache") == [], "wanting it waits for nothing"
        await asyncio.wait_for(repository.graph.ready(), 30)
        [graph] = graphs(tmp_path / "cache")
        assert graph.read_bytes()[:4] == b"CGPH"
        assert b"BIDX" in graph.read_bytes()[:200], "with filters of changed paths"
        assert await logged(repository, "f2") == repo.git("log", "--format=%H", "--", "f2").split()
    assert graphs(repo.root / ".git") == []


async def test_a_graph_of_rewritten_history_misleads_nobody(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with opened(repo.root, tmp_path / "cache") as repositories:
        repository = await repositories.at(HERE)
        repository.graph.want()
        await asyncio.wait_for(repository.graph.ready(), 30)
        repo.git("reset", "-q", "--hard", "HEAD~5")
        for number in range(3):
            repo.commit(f"again {number}", {f"f{number}": f"rewritten {number}\n"})
        repo.git("reflog", "expire", "--expire=now", "--all")
        repo.git("gc", "-q", "--prune=now")
        repository = await repositories.at(HERE)
        for path in ("f0", "f1", "f2", "f3"):
            assert await logged(repository, path) == repo.git("log", "--format=%H", "--", path).split()


async def test_a_graph_left_behind_serves_the_next_process(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    for _ in range(2):
        async with opened(repo.root, tmp_path / "cache") as repositories:
            repository = await repositories.at(HERE)
            repository.graph.want()
            await asyncio.wait_for(repository.graph.ready(), 30)
        assert len(graphs(tmp_path / "cache")) == 1


async def test_closing_while_it_is_built_leaves_nothing_running(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with opened(repo.root, tmp_path / "cache") as repositories:
        repository = await repositories.at(HERE)
        repository.graph.want()
        await asyncio.sleep(0)
    assert not list((tmp_path / "cache").rglob("view-*"))
    assert len(asyncio.all_tasks()) == 1


async def test_views_of_dead_processes_are_swept(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with opened(repo.root, tmp_path / "cache") as repositories:
        directory = (await repositories.at(HERE)).view.directory
        dead = directory.with_name("view-dead")
        dead.mkdir()
        (dead / "alive").touch()
        async with opened(repo.root, tmp_path / "cache") as others:
            await others.at(HERE)
            assert not dead.exists()
            assert directory.exists(), "a living one is left alone"
