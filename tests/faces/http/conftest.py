from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .serving import House, house


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    root = tmp_path / "project"
    root.mkdir()
    async with house(root) as made:
        yield made
