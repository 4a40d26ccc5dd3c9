"""Files, lines and directories of a size nobody asked for: every tool answers, in time and within its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.result import Result
from toolgate.facade import Gate

from .attempts import CONFIG
from .reach import Way, ways

ENDS_WITHIN = 20.0
MEMORY = 300 << 20
"""More than this for one call is not bounded by what it gives back."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "garden").mkdir()
    (tmp_path / "a.txt").write_text("a plain page\n")
    return tmp_path


def resident() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) << 10


async def measured(gate: Gate, tool: str, args: dict[str, Any]) -> Result:
    begun, before = time.monotonic(), resident()
    result = await gate.call(tool, args)
    assert time.monotonic() - begun < ENDS_WITHIN, tool
    assert resident() - before < MEMORY, tool
    return result


def by_path(gate: Gate) -> Iterator[Way]:
    return (way for way in ways(gate.services.registry) if way.kind in ("path", "diff"))


async def test_a_file_of_ten_gigabytes_is_refused_or_looked_at_in_part(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(10 << 30)
    async with toolgate.open(
        root, CONFIG | {"timeouts": {"tool": {"fs.hash": 1.0}}, "ledger": {}}, "memory"
    ) as gate:
        codes: dict[str, set[str]] = {}
        for way in by_path(gate):
            if way.tool.startswith(("code.blame", "code.log", "code.diff")) or way.tool in (
                "fs.save",
                "fs.ensure_dir",
            ):
                continue  # no repository here, and no file of that name in scratch
            result = await measured(gate, way.tool, way.args("huge"))
            codes.setdefault(way.tool, set()).add("ok" if result.error is None else result.error.code.value)
        ranged = await measured(gate, "fs.read", {"path": "huge", "ranges": [[1, 9]]})
        assert ranged.error is not None
        assert ranged.error.code == "too_large"
    assert (root / "huge").stat().st_size == 10 << 30
    for tool in ("fs.read", "code.read", "code.outline", "fs.write", "fs.append", "fs.edit", "fs.delete"):
        assert codes[tool] == {"too_large"}, tool
    assert codes["fs.hash"] <= {"timeout", "ok"}
    assert codes["code.search"] == {"ok"}  # it is full of NUL: binary, and passed over


async def test_a_line_of_eighteen_megabytes_gives_short_answers(root: Path) -> None:
    (root / "line.js").write_bytes(b"x" * (18 << 20) + b"needle\n")
    async with toolgate.open(root, CONFIG | {"ledger": {}}, "memory") as gate:
        for tool, args in (
            ("fs.read", {"path": "line.js"}), ("code.read", {"path": "line.js"}), ("code.outline", {"path": "line.js"}),
            ("fs.read", {"path": "line.js", "ranges": [[1, 1]]}), ("fs.edit", {"path": "line.js", "find": "x", "replace": "y"}),
        ):  # fmt: skip
            result = await measured(gate, tool, args)
            assert result.error is not None
            assert result.error.code == "too_large"
        for pattern in ("needle", "(x+x+)+y", r"(\w+)*\d$", r"\p{Lu}*needle"):
            found = await measured(gate, "code.search", {"pattern": pattern, "paths": ["line.js"]})
            assert found.ok, pattern
            assert all(len(match["line_text"]) < 600 for match in found.data["matches"])


async def test_a_directory_of_many_entries_is_listed_in_part_and_said_so(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(6_000):
        (root / "many" / f"{number}.txt").touch()
    async with toolgate.open(root, CONFIG | {"ledger": {}}, "memory") as gate:
        for tool, args in (
            ("fs.list", {"path": "many"}), ("fs.find", {"base": "many", "pattern": "*.txt"}), ("code.list", {"directory": "many"}),
        ):  # fmt: skip
            result = await measured(gate, tool, args)
            assert result.ok
            assert result.data["truncated"] is True
        assert (await measured(gate, "code.search", {"pattern": "x", "paths": ["many"]})).data[
            "matches"
        ] == []
        for tool, args in (
            ("fs.delete", {"path": "many"}),
            ("fs.move", {"path": "many", "new_path": "more"}),
        ):
            result = await measured(gate, tool, args)
            assert result.error is not None
            assert result.error.code == "too_large"
    assert len(list((root / "many").iterdir())) == 6_000
