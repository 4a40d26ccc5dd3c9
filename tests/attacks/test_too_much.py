"""Files, lines and directories of a size nobody asked for: every tool answers, in time and within its memory."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.workspace.search.search import TIME_LIMIT

from .attempts import CONFIG
from .reach import Way, ways

ENDS_WITHIN = TIME_LIMIT + 5.0
"""The limit of a search and of a walk, and what a busy machine may take to notice it."""
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


def searched(result: Result) -> list[dict[str, Any]]:
    """What was found. On a busy machine the time may be up before that: then it says so."""
    if result.error is not None:
        assert result.error.code == "timeout", result.error
        return []
    matches: list[dict[str, Any]] = result.data["matches"]
    return matches


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


async def test_a_file_of_ten_gigabytes_that_begins_as_text_is_read_where_it_is_text(root: Path) -> None:
    with (root / "huge.log").open("wb") as file:
        file.write(b"a line of text\n" * 5000)
        file.truncate(10 << 30)
    async with toolgate.open(root, CONFIG | {"ledger": {}}, "memory") as gate:
        for tool in ("fs.read", "code.read", "code.outline", "fs.delete"):
            result = await measured(gate, tool, {"path": "huge.log"})
            assert result.error is not None
            assert result.error.code == "too_large"
        (part,) = (await measured(gate, "fs.read", {"path": "huge.log", "ranges": [[4999, 5000]]})).data[
            "range_slices"
        ]
        assert part["content"] == "a line of text\n" * 2
        beyond = await measured(gate, "fs.read", {"path": "huge.log", "ranges": [[5000, 5001]]})
        assert beyond.error is not None
        assert beyond.error.code == "too_large"
        for pattern in ("text", "needle", r"\p{Lu}*needle"):
            found = await measured(gate, "code.search", {"pattern": pattern, "paths": ["huge.log"]})
            assert found.data["matches"] == []  # there is NUL in it: binary


async def test_a_line_of_a_hundred_megabytes_gives_short_answers(root: Path) -> None:
    with (root / "line.js").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"needle\n")
    async with toolgate.open(root, CONFIG | {"ledger": {}}, "memory") as gate:
        for tool, args in (
            ("fs.read", {"path": "line.js"}), ("code.read", {"path": "line.js"}), ("code.outline", {"path": "line.js"}),
            ("fs.read", {"path": "line.js", "ranges": [[1, 1]]}), ("fs.edit", {"path": "line.js", "find": "x", "replace": "y"}),
            ("fs.append", {"path": "line.js", "text": "y"}), ("fs.delete", {"path": "line.js"}),
        ):  # fmt: skip
            result = await measured(gate, tool, args)
            assert result.error is not None
            assert result.error.code == "too_large"
        assert (await measured(gate, "fs.hash", {"path": "line.js"})).data["size"] == (100 << 20) + 7
        for pattern in ("needle", "(x+x+)+y", r"(\w+)*\d$", r"\p{Lu}*needle"):
            found = await measured(gate, "code.search", {"pattern": pattern, "paths": ["line.js"]})
            for match in searched(found):
                assert len(match["line_text"]) < 600
                assert pattern != "needle" or match["column"] == (100 << 20) + 1


ENTRIES = 200_000
"""A million takes a minute: `python -m bench.limits` does that."""


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Path]:
    """A project with a directory of very many entries, in memory where that can be had: a disk takes five times as long."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        root = Path(name)
        (root / "garden").mkdir()
        (root / "many").mkdir()
        handle = os.open(root / "many", os.O_RDONLY)
        for number in range(ENTRIES):
            os.close(os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.close(handle)
        yield root


async def test_a_directory_of_very_many_entries_is_listed_in_part_and_said_so(crowded: Path) -> None:
    async with toolgate.open(crowded, CONFIG | {"ledger": {}}, "memory") as gate:
        for tool, args in (
            ("fs.list", {"path": "many"}), ("fs.find", {"base": "many", "pattern": "*.txt"}), ("code.list", {"directory": "many"}),
        ):  # fmt: skip
            result = await measured(gate, tool, args)
            assert result.ok
            assert result.data["truncated"] is True
        assert searched(await measured(gate, "code.search", {"pattern": "x", "paths": ["many"]})) == []
        for tool, args in (
            ("fs.delete", {"path": "many"}),
            ("fs.move", {"path": "many", "new_path": "more"}),
        ):
            result = await measured(gate, tool, args)
            assert result.error is not None
            assert result.error.code == "too_large"
    assert len(os.listdir(crowded / "many")) == ENTRIES
