from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import Outliner


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def mounts(project: Path) -> Iterator[Mounts]:
    with Mounts({"project": project}) as opened:
        yield opened


@pytest.fixture(scope="session")
def outliner() -> Iterator[Outliner]:
    with Outliner() as made:
        yield made
