"""A project with a garden, and a gate on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.names import HUMAN
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.features.garden.service import Garden
from toolgate.ledger.keys import Keys

ROOM = {"per_minute": 1_000_000, "per_hour": 1_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "tender",
    "personas": {
        "tender": {"phase": "collaborate", "allow": ["*"]},
        "stranger": {"phase": "collaborate", "allow": ["*"], "user": "bob"},
    },
    "mounts": {"garden": {"path": "garden"}},
    "limits": {"global": ROOM, "persona": ROOM, "journal_bytes": {"per_minute": 1 << 30}},
}
PROFILE = "garden:users/me/parts/work/profile.md"
KEYS = Keys({1: b"k" * 32}, b"s" * 32)


class Plot:
    def __init__(self, gate: Gate, root: Path) -> None:
        self.gate, self.root = gate, root

    @property
    def garden(self) -> Garden:
        found: Garden = self.gate.feature("garden")
        return found

    async def call(self, tool: str, **args: Any) -> Result:
        return await self.gate.call(tool, args)

    async def data(self, tool: str, **args: Any) -> Any:
        result = await self.call(tool, **args)
        assert result.ok, result.error
        return result.data

    def file(self, path: str = PROFILE) -> Path:
        return self.root / path.replace(":", "/", 1)

    def text(self, path: str = PROFILE) -> str:
        return self.file(path).read_bytes().decode()


@asynccontextmanager
async def plot(root: Path, database: Any = "memory", **more: Any) -> AsyncIterator[Plot]:
    (root / "garden").mkdir(parents=True, exist_ok=True)
    async with toolgate.open(root, CONFIG | more, database, keys=KEYS) as gate:
        made = Plot(gate, root)
        if not made.file().exists():
            for user in ("me", "bob"):
                await gate.call("garden.add", {"kind": "user", "user": user}, persona=HUMAN)
            await made.data("garden.add", kind="part", id="work")
            await made.data("garden.add", kind="relationship", id="ana")
        yield made
