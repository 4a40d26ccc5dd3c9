"""The commit-graph beside the view: it is used, it is never wrong, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from repositories import Repo
from toolgate.core.paths import MountPath
from toolgate.policy.hard import MountRules
from toolgate.policy.model import MountSpec
from toolgate.workspace.git.history import LogRequest, log
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
        repository.view, repository.batch, tip.decode(), LogRequest(path, 100), repository.visible
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


async def test_the_next_process_builds_nothing_while_the_refs_are_the_same(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    built = []
    for number in range(3):
        if number == 2:
            repo.commit("one more", {"f0": "newer\n"})
        async with opened(repo.root, tmp_path / "cache") as repositories:
            repository = await repositories.at(HERE)
            repository.graph.want()
            await asyncio.wait_for(repository.graph.ready(), 30)
        [graph] = graphs(tmp_path / "cache")
        built.append((graph.stat().st_ino, graph.stat().st_mtime_ns))
    assert built[0] == built[1] != built[2]


def slow(repository: Repository, directory: Path, then: str) -> Path:
    """Let git wait for a file before it builds, and say `begun` first."""
    begun, go_on = directory / "begun", directory / "go-on"
    script = directory / "slow-git"
    script.write_text(
        f"""#!/bin/sh
case "$*" in *"commit-graph write"*)
    echo $$ > {begun}.new; mv {begun}.new {begun}
    n=0; while [ ! -e {go_on} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
    {then}
esac
exec {repository.view.program} "$@"
"""
    )
    script.chmod(0o755)
    repository.view.program = str(script)
    return begun


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_graph_that_is_being_built_is_finished_after_whoever_wanted_it_is_gone(
    tmp_path: Path,
) -> None:
    repo = made(tmp_path / "project")
    cache = tmp_path / "cache"
    async with opened(repo.root, cache) as repositories:
        repository = await repositories.at(HERE)
        begun = slow(repository, tmp_path, ":")
        repository.graph.want()
        await until(begun.exists)
        directory = repository.view.directory
    assert len(asyncio.all_tasks()) == 1
    async with opened(repo.root, cache) as repositories:
        repository = await repositories.at(HERE)
        assert directory.exists(), "the git that goes on needs its view"
        repository.graph.want()
        await asyncio.wait_for(repository.graph.ready(), 30)
        assert graphs(cache) == [], "nobody else builds meanwhile"
        (tmp_path / "go-on").touch()
        await until(lambda: len(graphs(cache)) == 1)
        pid = int(begun.read_text())
        await until(lambda: not Path(f"/proc/{pid}").exists())  # collected, too: we live longer than it
    async with opened(repo.root, cache) as repositories:
        await repositories.at(HERE)
        assert not directory.exists(), "and its view is swept when it has ended"


async def test_a_git_that_goes_on_holds_nothing_that_we_were_started_with(tmp_path: Path) -> None:
    """Whoever waits for the end of a pipe waits for the command, not for the graph."""
    repo = made(tmp_path / "project")
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        async with opened(repo.root, tmp_path / "cache") as repositories:
            repository = await repositories.at(HERE)
            begun = slow(repository, tmp_path, ":")
            repository.graph.want()
            await until(begun.exists)
    finally:
        os.close(theirs)
    pid = int(begun.read_text())
    assert not ended(pid)
    os.set_blocking(ours, False)
    assert os.read(ours, 1) == b"", "its other end is closed"
    os.close(ours)
    (tmp_path / "go-on").touch()
    await until(lambda: ended(pid))


def ended(pid: int) -> bool:
    """Also one that nobody has collected yet."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


async def test_a_graph_that_cannot_be_built_is_not_tried_by_every_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repo = made(tmp_path / "project")
    tried = tmp_path / "tried"
    (tmp_path / "go-on").touch()
    for _ in range(3):
        async with opened(repo.root, tmp_path / "cache") as repositories:
            repository = await repositories.at(HERE)
            slow(repository, tmp_path, f"echo 'fatal: no room' >&2; echo x >> {tried}; exit 3")
            repository.graph.want()
            await asyncio.wait_for(repository.graph.ready(), 30)
            assert await logged(repository, "f2") == repo.git("log", "--format=%H", "--", "f2").split()
    assert tried.read_text() == "x\n"
    assert "fatal: no room" in caplog.text


async def test_a_graph_takes_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.workspace.git.repositories.BUILD_SECONDS", 1.0)
    repo = made(tmp_path / "project")
    async with opened(repo.root, tmp_path / "cache") as repositories:
        repository = await repositories.at(HERE)
        begun = slow(repository, tmp_path, ":")
        repository.graph.want()
        await asyncio.wait_for(repository.graph.ready(), 30)
        assert ended(int(begun.read_text()))


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
