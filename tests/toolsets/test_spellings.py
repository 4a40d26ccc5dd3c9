"""Arguments by the other names and in the other forms that callers know them by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from repositories import Repo

CONFIG = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "collaborate", "allow": ["fs.*"]}},
}


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[toolgate.Gate]:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a.txt": "hit\n", "d/b.txt": "hit\n"})
    repo.write({"a.txt": "changed\n", "d/b.txt": "changed\n"})
    async with toolgate.open(repo.root, CONFIG, "memory") as opened:
        yield opened


async def data(gate: toolgate.Gate, name: str, **args: Any) -> Any:
    result = await gate.call(name, args)
    assert result.ok, result.error
    return result.data


async def test_a_search_begins_at_its_root(gate: toolgate.Gate) -> None:
    found = await data(gate, "fs.search", root="d", pattern="CHANGED", opts={"caseSensitive": False})
    assert [match["file"] for match in found["matches"]] == ["d/b.txt"]


async def test_a_write_takes_its_condition_among_options(gate: toolgate.Gate) -> None:
    told = (await data(gate, "fs.read", path="a.txt"))["hash"]
    written = await data(gate, "fs.write", path="a.txt", content="new\n", opts={"ifMatch": told})
    assert written["before_hash"] == told
    stale = await gate.call("fs.write", {"path": "a.txt", "content": "x", "opts": {"ifMatch": told}})
    assert stale.error is not None
    assert stale.error.code == "conflict"


@pytest.mark.parametrize(
    "args",
    [
        {"opts": {"ifMatch": "x", "nonsense": 1}},
        {"opts": "x"},
        {"opts": {"path": "other"}},
        {"opts": {"opts": {}}},
    ],
)
async def test_options_hold_arguments_and_nothing_else(gate: toolgate.Gate, args: dict[str, Any]) -> None:
    result = await gate.call("fs.write", {"path": "a.txt", "content": "x", **args})
    assert result.error is not None
    assert result.error.code == "invalid_args"


async def test_one_path_may_stand_for_a_list(gate: toolgate.Gate) -> None:
    diff = await data(gate, "code.diff", paths="d/b.txt")
    assert [file["path"] for file in diff["files"]] == ["d/b.txt"]
    found = await data(gate, "code.search", pattern="changed", paths="a.txt")
    assert [match["file"] for match in found["matches"]] == ["a.txt"]


@pytest.mark.parametrize("ranges", [[1, 2], [[1, 2]], {"start": 1, "end": 2}, [{"start": 1, "end": 2}]])
async def test_a_range_of_lines_is_taken_in_the_forms_in_which_it_is_given_and_told(
    gate: toolgate.Gate, ranges: Any
) -> None:
    await data(gate, "fs.write", path="n.txt", content="1\n2\n3\n")
    found = await data(gate, "fs.read", path="n.txt", ranges=ranges)
    assert found["range_slices"] == [{"start": 1, "end": 2, "content": "1\n2\n"}]
    again = await data(gate, "fs.read", path="n.txt", ranges=[{"start": 3, "end": 3}, [1, 1]])
    assert [part["content"] for part in again["range_slices"]] == ["3\n", "1\n"]


@pytest.mark.parametrize(
    "ranges", [[], [1], [1, 2, 3], "1-2", {"start": 1}, [{"start": 1, "end": 0}], [[2, 1]], [0, 1]]
)
async def test_what_is_no_range_of_lines_is_refused(gate: toolgate.Gate, ranges: Any) -> None:
    refused = await gate.call("fs.read", {"path": "a.txt", "ranges": ranges})
    assert refused.error is not None
    assert refused.error.code == "invalid_args"


async def test_help_is_asked_for_by_the_id_of_a_tool(gate: toolgate.Gate) -> None:
    assert (await data(gate, "archon.tools.help", tool_id="fs.read"))["name"] == "fs.read"
