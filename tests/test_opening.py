"""What a program may get wrong when it opens a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.core.errors import SetupError
from toolgate.project.config import Config


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


async def test_a_changed_file_that_fails_in_a_way_nobody_thought_of_does_not_leave_the_old_policy_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(file: Path) -> Config:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\npersonas: {ada: {allow: ['system.*']}}\n")
    async with toolgate.open(tmp_path, file, "memory") as gate:
        assert (await gate.call("system.ping", persona="ada")).ok
        file.write_text('version: 1\n"\\ud800": 1\n')
        monkeypatch.setattr("toolgate.project.config.read", fails)
        for _ in range(3):
            refused = await gate.call("system.ping", persona="ada")
            assert refused.error is not None
            assert refused.error.code == "unavailable"
