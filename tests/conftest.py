from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and trust of the tests live with the test; the real home is never touched."""
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
