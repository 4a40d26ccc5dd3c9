"""The Inspector's command line, as a client that people check servers with: both transports, both eras."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.standing import gate_with, site
from node.programs import run
from toolgate.faces.cli.main import main
from toolgate.kits.web.tokens import Tokens

SOURCE = str(Path(__file__).parents[2] / "src")
SECONDS = 240.0
pytestmark = pytest.mark.node
_RUN = "import sys; from toolgate.faces.cli.main import main; sys.exit(main(sys.argv[1:]))"


@asynccontextmanager
async def _stdio(root: Path) -> AsyncIterator[list[str]]:
    assert await asyncio.to_thread(main, ["init", "--root", str(root)]) == 0
    env = {"TOOLGATE_STATE_DIR": os.environ["TOOLGATE_STATE_DIR"], "PYTHONPATH": SOURCE}
    options = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
    yield [sys.executable, "-c", _RUN, "mcp", "--root", str(root), *options]


@asynccontextmanager
async def _http(root: Path) -> AsyncIterator[list[str]]:
    tokens = Tokens(root.parent / "tokens" / "t.json")
    async with gate_with(root, {}) as gate, site(gate, tokens) as url:
        yield [url, "--header", f"Authorization: Bearer {tokens.of('ada')}"]


@pytest.mark.parametrize("reached", [_stdio, _http])
async def test_the_inspector_lists_and_calls_tools_in_both_eras(
    reached: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "hello.py").write_text("print('hello')\n")
    async with reached(root) as target:
        for era in ("legacy", "modern"):
            listed, called = await asyncio.gather(
                _inspect(*target, "--method", "tools/list", "--strict", era=era),
                _inspect(
                    *target, "--method", "tools/call", "--tool-name", "fs_read", "--tool-arg", "path=hello.py", era=era
                ),
            )  # fmt: skip
            assert {"fs_read", "fs_search", "tools_find"} <= {tool["name"] for tool in listed["tools"]}
            assert "structuredContent" not in called
            assert "print('hello')" in called["content"][0]["text"]


async def _inspect(*args: str, era: str) -> Any:
    """With `--strict` it also ends badly where a schema is one that clients stumble over."""
    ended = await run("inspector", "--cli", *args, "--protocol-era", era, seconds=SECONDS)
    assert ended.code == 0, ended
    return json.loads(ended.out)
