from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgate.features.servers import process

from .world import alive


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project's directory; whatever was started for it has ended when the test has."""
    monkeypatch.setattr(process, "GRACE", 0.2)  # programs that will not end are not waited for long
    yield tmp_path
    assert alive(str(tmp_path)) == []
