"""The README's two minutes: its file, started as a client starts it, in a project made as it says."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from toolgate.faces.cli.main import main

from .pages import blocks, read

_RUN = "import sys; from toolgate.faces.cli.main import main; sys.exit(main(sys.argv[1:]))"
SOURCE = str(Path(__file__).parents[2] / "src")


async def test_a_newcomer_connects_an_assistant_and_approves_a_change_in_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert await asyncio.to_thread(main, ["init"]) == 0
    shown = next(block for block in blocks(read("README.md"), "json") if "mcpServers" in block)
    assert shown in read("docs/mcp.md")
    server = json.loads(shown)["mcpServers"]["toolgate"]
    assert server["command"] == "toolgate"
    start = StdioServerParameters(
        command=sys.executable,
        args=["-c", _RUN, *server["args"]],
        cwd=project,
        env={"TOOLGATE_STATE_DIR": os.environ["TOOLGATE_STATE_DIR"], "PYTHONPATH": SOURCE},
    )
    asked: list[str] = []

    async def approve(context: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "approve"})

    async with Client(start, elicitation_callback=approve, read_timeout_seconds=30) as client:
        read_back = await client.call_tool("code.read", {"path": "toolgate.yaml"})
        assert not asked
        assert read_back.content[0].text.startswith("toolgate.yaml 1-")
        written = await client.call_tool("fs.write", {"path": "hello.md", "content": "hello\n"})
        assert written.content[0].text.startswith("created hello.md")
    assert (project / "hello.md").read_text() == "hello\n"
    assert "+hello" in asked[0]
