from __future__ import annotations

import gc
import io
import itertools
import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import needs
import sampling
from faces.cli.driving import Cli, Done, Terminal
from lacking import judge
from servers.postgres import Server, running_postgres

# The same cases in every run, so that a change is judged by what it changed; TOOLGATE_EXPLORE=1 looks for new ones.
# Without a deadline for each case: how long one takes says more about the machine than about us.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, max_examples=sampling.fewer(100, 25)
)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if os.environ.get("TOOLGATE_EXPLORE") else "same")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (needs, sampling):
        config.pluginmanager.register(plugin)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is judged. What a test printed or logged may hold broken characters on purpose; a worker could not
    hand that on."""
    report = yield
    judge(report)
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


def pytest_collection_finish() -> None:
    """What is loaded by now stays. The collector of garbage need not look through it after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def state_dirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New ones, by number: `mktemp` would look through all that there are, thousands in the end."""
    base = tmp_path_factory.mktemp("state")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_state_dir(state_dirs: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys, trust and secrets of the tests live with the test; the real home and keyring are never touched."""
    directory = next(state_dirs)
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(directory))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return directory


@pytest.fixture(autouse=True)
def says_what_it_needs(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test may ask for the server while it runs; without its marker it would run where there is none."""
    yield
    if "postgres_server" in request.fixturenames:
        assert request.node.get_closest_marker("postgres"), "mark it with pytest.mark.postgres"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One real PostgreSQL for the whole run. Where it cannot start, the tests fail: nothing is skipped."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_dsn(postgres_server: Server) -> str:
    return postgres_server.dsn


@pytest.fixture
def fresh_dsn(postgres_server: Server) -> str:
    """An empty database of its own."""
    return postgres_server.fresh_dsn()


@pytest.fixture
def cli(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in this process, inside the `project` of whoever uses it."""
    from toolgate.faces.cli.main import main
    from toolgate.kits.terminal import speech

    def run(*args: str, stdin: bytes = b"") -> Done:
        monkeypatch.chdir(project)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(args)
        said = capsys.readouterr()
        speech.mode.reset()  # which a command leaves as it was asked to speak
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def terminal(project: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts commands at a pseudo-terminal, in the `project` of whoever uses it."""
    opened: list[Terminal] = []

    def open_one(*args: str) -> Terminal:
        opened.append(Terminal(*args, cwd=project))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
