from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, and a state directory of this test's own."""
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    directory = tmp_path / "project"
    directory.mkdir()
    return directory
