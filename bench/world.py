"""What is measured: two trivial tools, a gate around them, and a ledger of any length."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import toolgate
from toolgate.core.call import new_id
from toolgate.core.clock import SECOND, SystemClock
from toolgate.core.event import Committed, Started
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.port import Backend

HERE = Path(__file__).parent
REALISTIC = HERE.parent / "tests" / "policy" / "realistic.yaml"
ARGS = {
    "to": "the quarterly report",
    "text": "Numbers are in; please look at page 3 before noon.",
    "copies": 2,
}
FILE_ARGS = {"path": "tests/test_report.py", "text": ARGS["text"]}
ROOMY = {"per_minute": 10_000_000, "per_hour": 10_000_000}
LIMITS = {"global": ROOMY, "persona": ROOMY}
"""Counted like any other, and never full."""
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "bench",
    "personas": {"bench": {"phase": "observe", "allow": ["bench.*"]}},
    "limits": LIMITS,
}


async def look(to: str, text: str, copies: int = 1) -> str:
    return to


async def send(to: str, text: str, copies: int = 1) -> str:
    return to


async def read_file(path: MountPath, text: str = "") -> str:
    return text


async def write_file(path: MountPath, text: str) -> str:
    return text


READ = toolgate.tool("bench.look", reads=["system"], description="Look, and change nothing.")(look)
EFFECT = toolgate.tool("bench.send", writes=["outside"], description="Send, and change the world.")(send)
# names and effects that a realistic policy has rules about; the file tools of that name do real work
RULED_READ = toolgate.tool("code.peek", reads=["project"], description="Read a file.")(read_file)
RULED_WRITE = toolgate.tool("fs.put", writes=["project"], description="Write a file.")(write_file)
TOOLS: tuple[Tool, ...] = (READ, EFFECT, RULED_READ, RULED_WRITE)


def realistic() -> dict[str, Any]:
    """The policy of 30 rules that the tests explain, with limits that a benchmark does not reach."""
    config: dict[str, Any] = yaml.safe_load(REALISTIC.read_text().replace("fs.write", "fs.put"))
    config["personas"]["builder"]["limits"] = ROOMY
    return config | {"limits": LIMITS, "default_persona": "builder"}


@contextmanager
def scratch() -> Iterator[Path]:
    """On the disk of the working copy, or on the one that TOOLGATE_BENCH_DISK names a directory of: a temporary directory
    may be memory, where durability costs nothing."""
    base = Path(os.environ.get("TOOLGATE_BENCH_DISK") or HERE / ".scratch")
    base.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as name:
        os.environ["TOOLGATE_STATE_DIR"] = str(Path(name) / "state")
        yield Path(name)


@asynccontextmanager
async def gate(
    root: Path, database: str | Backend | None = None, config: dict[str, Any] | None = None
) -> AsyncIterator[Gate]:
    root.mkdir(parents=True, exist_ok=True)
    async with toolgate.open(root, config or CONFIG, database, tools=TOOLS) as opened:
        yield opened


async def checked(gate: Gate, tool: Tool, args: dict[str, Any]) -> None:
    """A refusal is faster than a call: one before each measurement must have run."""
    result = await gate.call(tool.name, args)
    if not result.ok:
        raise RuntimeError(f"{tool.name} does not run here: {result.error}")


@dataclass
class Past:
    """Thirty days ago, then half an hour per look: long ledgers were not written within the last hour."""

    micros: int = 0

    def now(self) -> int:
        if not self.micros:
            self.micros = SystemClock().now() - 30 * 24 * 3600 * SECOND
        self.micros += 1800 * SECOND
        return self.micros


async def grow(ledger: Ledger, rows: int, tell: Callable[[int], None] = lambda done: None) -> None:
    """Append whole calls through the ledger itself, hundreds in one transaction, until `rows` is reached."""
    have = (await ledger.backend.head()).seq
    while have < rows:
        count = min(500, (rows - have + 1) // 2)
        await ledger.do(Work(lambda view, count=count: _calls(view, count), durable=False))  # type: ignore[misc]
        have += 2 * count
        tell(have)


def _calls(view: View, count: int) -> None:
    for _ in range(count):
        envelope: dict[str, Any] = {"call": new_id("c"), "persona": "bench", "tool": EFFECT.name}
        view.emit(
            Started(
                **envelope, digest=EFFECT.definition, definition=EFFECT.definition, owner="bench", args=ARGS,
                rule="allow:bench", decision="allow", reason="bench may use bench.*", effectful=True,
            )
        )  # fmt: skip
        view.emit(Committed(**envelope, summary='"the quarterly report"', duration_us=900, tokens=6))
