"""What may be in the place of toolgate.yaml: nothing there holds the gate or fills its memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import toolgate
from gates import PATIENCE
from toolgate.core.errors import ConfigError


def _large(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(1 << 30)


def _endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


PLACES: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "a gigabyte": _large,
    "device": _endless,
}
SAID = {
    "fifo": "regular file",
    "directory": "directory",
    "a gigabyte": "larger than",
    "device": "regular file",
}


@pytest.mark.parametrize("kind", PLACES)
async def test_a_gate_does_not_open_on_what_is_no_file(tmp_path: Path, kind: str) -> None:
    PLACES[kind](tmp_path / "toolgate.yaml")
    for config in (None, tmp_path / "toolgate.yaml"):
        with pytest.raises(ConfigError) as caught:
            async with asyncio.timeout(PATIENCE), toolgate.open(tmp_path, config):
                pass
        assert SAID[kind] in caught.value.message.lower()
        assert caught.value.fix


@pytest.mark.parametrize("kind", PLACES)
async def test_a_file_that_becomes_something_else_stops_every_call(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "toolgate.yaml"
    file.write_text("version: 1\ndefault_persona: a\npersonas: {a: {phase: observe}}\n")
    async with toolgate.open(tmp_path, file, "memory") as gate:
        assert (await gate.call("system.ping")).ok
        file.unlink()
        PLACES[kind](file)
        result = await asyncio.wait_for(gate.call("system.ping"), PATIENCE)
        assert result.error is not None
        assert result.error.code == "unavailable"
        assert SAID[kind] in result.error.message.lower()
