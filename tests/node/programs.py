"""Programs of other people, written for Node, as the Makefile installs them. A missing one is a failure, never a skip."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .npm import NODE

HOME = Path(__file__).parents[2] / ".venv" / "node" / "node_modules" / "@modelcontextprotocol"
CACHE = HOME.parents[1] / ".compiled"
"""Compiled once: half the time of starting a program."""
ENTRIES = {
    "conformance": "conformance/dist/index.js",
    "inspector": "inspector/clients/launcher/build/index.js",
    "everything": "server-everything/dist/index.js",
    "filesystem": "server-filesystem/dist/index.js",
    "memory": "server-memory/dist/index.js",
    "sequential-thinking": "server-sequential-thinking/dist/index.js",
}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def command(name: str) -> list[str]:
    entry = HOME / ENTRIES[name]
    assert entry.exists(), f"{entry} is missing: `make test` installs it"
    return [str(NODE), str(entry)]


async def run(name: str, *args: str, seconds: float, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ended:  # fmt: skip
    """To its end, or killed when the time is over."""
    process = await asyncio.create_subprocess_exec(
        *command(name), *args, cwd=cwd, env={**os.environ, "NO_COLOR": "1", "NODE_COMPILE_CACHE": str(CACHE), **(env or {})},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
