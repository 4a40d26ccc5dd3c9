from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.workspace import confine
from toolgate.workspace.confine import Opener, open_by_walking
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest) -> Opener:
    """Both ways of confinement; every test that uses it says the same about both."""
    if request.param == "walk":
        return open_by_walking
    if not confine.available():
        pytest.skip("this kernel has no openat2")
    return confine.open_by_kernel


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret").write_text("secret")
    return directory


@pytest.fixture
def state(tmp_path: Path) -> Path:
    directory = tmp_path / "state"
    directory.mkdir()
    return directory


@pytest.fixture
def mounts(project: Path, opener: Opener) -> Iterator[Mounts]:
    with Mounts({"project": project}, opener) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _stores_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those that a test makes: from Python 3.13 on it says which were left open."""
    made: list[Images] = []
    make = Images.__init__

    def remembered(self: Images, *given: Any, **more: Any) -> None:
        make(self, *given, **more)
        made.append(self)

    monkeypatch.setattr(Images, "__init__", remembered)
    yield
    for each in made:
        each.close()


@pytest.fixture
def images(state: Path) -> Images:
    return Images(state / "images")


@pytest.fixture
def files(mounts: Mounts, images: Images, state: Path) -> WorkspaceFiles:
    return WorkspaceFiles(mounts, images, state, read_limit=4096)
