"""What a program may get wrong when it opens a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.core.errors import SetupError


async def test_a_configuration_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no configuration file .*missing\.yaml"):
        async with toolgate.open(tmp_path, tmp_path / "missing.yaml"):
            pass


async def test_a_plain_function_among_the_tools_is_told_how_to_become_one(tmp_path: Path) -> None:
    async def forgotten(x: int) -> int:
        return x

    with pytest.raises(SetupError, match="forgotten is not a tool") as caught:
        async with toolgate.open(tmp_path, {"version": 1}, "memory", tools=[forgotten]):  # type: ignore[list-item]
            pass
    assert "@toolgate.tool" in caught.value.fix
