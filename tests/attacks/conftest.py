from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from .everything import Tale, Thief, tell


@pytest.fixture(scope="session")
def tale(tmp_path_factory: pytest.TempPathFactory) -> Tale:
    """Told once; every test works on a copy."""
    return asyncio.run(tell(tmp_path_factory.mktemp("tale")))


@pytest.fixture
def thief(tale: Tale, tmp_path: Path) -> Iterator[Thief]:
    found = Thief(tale.path, tmp_path / "ledger.db")
    yield found
    found.db.close()
