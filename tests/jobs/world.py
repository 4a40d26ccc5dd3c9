"""A project whose tools leave a line for everything they really do, shared by the tests and the processes they kill."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate import Context, Gate, Tool, tool
from toolgate.features.jobs.job import Job
from toolgate.ledger.keys import Keys

KEYS = Keys({1: b"k" * 32}, b"s" * 32)
PATIENCE = 30.0
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {name: {"phase": "observe", "allow": ["w.*"]} for name in ("ada", "bob")},
    "limits": {"profile": "roomy"},
    "jobs": {"concurrency": 4},
    "policy": {
        "rules": [{"name": "asks", "tools": ["w.ask"], "decision": "ask", "reason": "it is asked about"}]
    },
}


def put(path: Path, text: str) -> None:
    """One append, on disk before it returns."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{text}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class World:
    """`done.txt` has what happened, `at.txt` where a call stands still until `go` is there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.done, self.at, self.go = root / "done.txt", root / "at.txt", root / "go"
        self.tries = 0

    async def stand(self, where: str) -> None:
        if not self.go.exists():
            put(self.at, where)
            await asyncio.Event().wait()

    def happened(self, context: Context, x: str, hold: str = "") -> bool:
        return any(line.startswith(f"{context.call_id} ") for line in lines(self.done))

    def tools(self) -> list[Tool]:
        return [*self.effects(), *self.reads()]

    def effects(self) -> list[Tool]:
        @tool("w.keyed", writes=["outside"], reconcile=self.happened)
        async def keyed(context: Context, x: str, hold: str = "") -> str:
            """Leave a line that can be found again."""
            if hold == "before":
                await self.stand(x)
            put(self.done, f"{context.call_id} {x}")
            if hold == "after":
                await self.stand(x)
            return f"did {x}"

        @tool("w.append", writes=["outside"])
        async def append(context: Context, x: str, hold: str = "") -> str:
            """Leave a line; nobody can tell afterwards whether it was left."""
            put(self.done, f"{context.call_id} {x}")
            if hold:
                await self.stand(x)
            return f"did {x}"

        @tool("w.ask", writes=["outside"])
        async def ask(context: Context, x: str) -> str:
            """Leave a line if a human lets it."""
            put(self.done, f"{context.call_id} {x}")
            return f"did {x}"

        @tool("w.secret", writes=["outside"])
        async def secret(password: str) -> str:
            """Takes a secret."""
            return "x"

        return [keyed, append, ask, secret]

    def reads(self) -> list[Tool]:
        @tool("w.look", reads=["system"])
        async def look(x: str, hold: str = "") -> str:
            """Read something."""
            if hold:
                await self.stand(x)
            return f"saw {x}"

        @tool("w.flaky", reads=["system"])
        async def flaky(good: int) -> str:
            """Works the so many-th time."""
            self.tries += 1
            if self.tries < good:
                raise ValueError("not yet")
            return f"at try {self.tries}"

        @tool("w.steps", reads=["system"])
        async def steps(context: Context) -> str:
            """Says how far it is."""
            context.progress(0.5, "half\0way")
            await self.stand("steps")
            return "all"

        return [look, flaky, steps]

    def did(self) -> list[str]:
        return [line.split(" ", 1)[1] for line in lines(self.done)]


@asynccontextmanager
async def opened(world: World, database: str | None, **more: Any) -> AsyncIterator[Gate]:
    async with toolgate.open(world.root, CONFIG | more, database, tools=world.tools(), keys=KEYS) as gate:
        yield gate


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


async def until(found: Callable[[], Awaitable[Any]]) -> Any:
    """What it finds, as soon as it finds something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := await found():
            return value
        await asyncio.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {found}")


async def in_state(gate: Gate, ident: str, *states: str) -> Job:
    async def look() -> Job | None:
        job = await gate.jobs.get(ident)
        assert not job.ended or job.state in states, job
        return job if job.state in states else None

    found: Job = await until(look)
    return found
