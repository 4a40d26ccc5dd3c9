from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import toolgate
from toolgate import MountPath
from toolgate.core.tool import Tool

LONGEST = 120
CONFIG: dict[str, Any] = {"version": 1, "servers": {"far": {"command": "true"}}}


async def _built_in(root: Path) -> list[Tool]:
    async with toolgate.open(root, CONFIG) as gate:
        return list(gate.services.registry)


def _meanings(tool: Tool) -> Iterator[tuple[str, str]]:
    for name, spec in tool.input_schema.get("properties", {}).items():
        yield f"{tool.name} {name}", spec.get("description", "")


async def test_every_argument_of_every_built_in_tool_says_in_a_few_words_what_it_means(
    tmp_path: Path,
) -> None:
    tools = await _built_in(tmp_path)
    assert {tool.name.partition(".")[0] for tool in tools} >= {
        "code", "events", "exec", "fs", "jobs", "ledger", "servers", "system", "tools",
    }  # fmt: skip
    told = dict(pair for tool in tools for pair in _meanings(tool))
    assert [name for name, meaning in told.items() if not meaning] == []
    assert [name for name, meaning in told.items() if len(meaning) > LONGEST] == []


def test_a_path_says_what_it_is_unless_its_tool_says_more() -> None:
    @toolgate.tool("t.look", reads=["project"])
    async def look(
        path: MountPath, others: list[MountPath], log: Annotated[MountPath, Field(description="Its log.")]
    ) -> str:
        """Look at a file."""
        return path

    told = look.input_schema["properties"]
    assert "`scratch:a.txt`" in told["path"]["description"]
    assert told["others"]["items"] == told["path"]
    assert told["log"]["description"] == "Its log."
