"""A gate over a small project, in memory, for a persona that may use every fs tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.result import Result
from toolgate.facade import Gate


def config(**mounts: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "default_persona": "maker",
        "personas": {"maker": {"phase": "collaborate", "allow": ["fs.*"], "mounts": [*{"project", "scratch", *mounts}]}},
        "mounts": mounts,
        "limits": {"global": {"per_minute": 1_000_000, "per_hour": 1_000_000}, "persona": {"per_minute": 1_000_000, "per_hour": 1_000_000}},
    }  # fmt: skip


class World:
    def __init__(self, gate: Gate, root: Path) -> None:
        self.gate, self.root = gate, root

    async def call(self, verb: str, **args: Any) -> Result:
        return await self.gate.call(f"fs.{verb}", args)

    async def data(self, verb: str, **args: Any) -> Any:
        result = await self.call(verb, **args)
        assert result.ok, result.error
        return result.data

    async def code(self, verb: str, **args: Any) -> str:
        result = await self.call(verb, **args)
        assert result.error is not None, result.data
        return result.error.code.value

    async def undo(self, result: Result) -> Result:
        assert result.meta.event_id is not None
        return await self.gate.undo(result.meta.event_id)


@asynccontextmanager
async def world(root: Path, **mounts: dict[str, Any]) -> AsyncIterator[World]:
    root.mkdir(exist_ok=True)
    async with toolgate.open(root, config(**mounts), "memory") as gate:
        yield World(gate, root)


Tree = dict[str, tuple[str, int, bytes]]


def tree(root: Path) -> Tree:
    """All that is there, to the byte and the bit, without toolgate's own directory."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/")[0] == ".toolgate":
            continue
        mode = path.lstat().st_mode & 0o777
        if path.is_symlink():
            found[name] = ("link", 0, str(path.readlink()).encode())
        elif path.is_dir():
            found[name] = ("directory", mode, b"")
        elif path.is_file():
            found[name] = ("file", mode, path.read_bytes())
        else:
            found[name] = ("other", 0, b"")
    return found
