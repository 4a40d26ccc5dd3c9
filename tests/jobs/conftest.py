from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import toolgate
from servers.postgres import Server

from .world import World

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of this process looks often; those in processes of their own do as they always do."""
    monkeypatch.setattr("toolgate.features.jobs.store.POLL_S", 0.05)


@pytest.fixture
def world(tmp_path: Path) -> World:
    root = tmp_path / "project"
    root.mkdir()
    return World(root)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres_server")
    return server.fresh_dsn()


@pytest.fixture
def start(world: World) -> Iterator[Start]:
    """Runners in processes of their own, gone when the test is."""
    started: list[subprocess.Popen[str]] = []

    def one(database: str | None, how: str = "run") -> subprocess.Popen[str]:
        command = [
            sys.executable,
            str(Path(__file__).parent / "runner_to_kill.py"),
            str(world.root),
            database or "-",
            how,
        ]
        environment = os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parents[1])}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline().strip() in ("running", "standing by")
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.communicate()
