"""A process that makes effectful calls until it is killed, and the warm parent it is forked from.

The parent imports everything once and starts nothing, so that a fork is cheap and safe. It obeys lines on stdin:
`start NAME POINT` forks a worker, `reap PID` waits for its end. Kill points are in this file's own tools only;
the point `rest` opens the gate and makes no calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import toolgate
from toolgate import Change, Context, FileChange, Gate, MountPath, Tool, tool
from toolgate.gate.flow import Services
from toolgate.ledger.keys import Keys

KEYS = Keys({1: b"k" * 32}, b"s" * 32)
FILES = 3
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"allow": ["w.append", "w.keyed", "w.files"]}},
    "limits": {"global": {"per_minute": 9_000_000, "per_hour": 9_000_000}}
    | {"persona": {"per_minute": 9_000_000, "per_hour": 9_000_000}},
    "consent": {"expires_s": 86_400, "max_open": 1000},
    "policy": {"rules": [{"name": "asks", "tools": ["w.ask"], "decision": "ask"}]},
}


def write_line(path: Path, text: str) -> None:
    """One append, on disk before it returns."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{text}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)


class Worker:
    def __init__(self, root: Path, name: str, point: str) -> None:
        self.root, self.name = root, name
        self.witness = root / "witness.txt"
        self.point, _, left = point.partition(":")
        self.left = int(left or 0)

    def pass_by(self, point: str) -> None:
        """Die here, if this is where and when it was decided."""
        if point == self.point:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def happened(self, context: Context, x: str) -> bool:
        return self.witness.exists() and f" {context.call_id} " in self.witness.read_text()

    def tools(self, services: Services) -> list[Tool]:
        files = services.files
        assert files is not None

        def put(context: Context, x: str) -> str:
            self.pass_by("before")
            write_line(self.witness, f"{context.tool} {context.call_id} {x}")
            self.pass_by("after")
            return x

        @tool("w.append", writes=["outside"])
        def append(context: Context, x: str) -> str:
            """Leave a line; nobody can tell afterwards whether it was left."""
            return put(context, x)

        @tool("w.keyed", writes=["outside"], reconcile=self.happened)
        async def keyed(context: Context, x: str) -> str:
            """Leave a line that can be found again."""
            return put(context, x)

        @tool("w.ask", writes=["outside"])
        async def ask(context: Context, x: str) -> str:
            """Never approved in this test."""
            return put(context, x)

        async def plan(x: str) -> Change:
            """Write several files."""
            paths = [MountPath.parse(f"{self.name}-{number}.txt") for number in range(FILES)]
            befores = [(self.root / path.relative) for path in paths]
            return Change(
                tuple(
                    FileChange(path, file.read_bytes() if file.exists() else None, x.encode() * 500)
                    for path, file in zip(paths, befores, strict=True)
                )
            )

        @tool("w.files", writes=["project"], plan=plan)
        async def write(change: Change, context: Context) -> str:
            self.pass_by("before")
            write_line(self.witness, f"{context.tool} {context.call_id} -")
            await files.apply(change)
            self.pass_by("after")
            return "written"

        return [append, keyed, ask, write]

    async def work(self, gate: Gate) -> None:
        """The last key is said again after each start: whether it ran or not, it must not run twice."""
        count_file = self.root / f"{self.name}.count"
        count = int(count_file.read_text()) if count_file.exists() else 0
        await self.expect(gate, "w.keyed", f"{self.name}{count}", key=f"{self.name}{count}")
        while True:
            count += 1
            count_file.with_suffix(".new").write_text(str(count))
            count_file.with_suffix(".new").replace(count_file)
            await self.expect(gate, "w.keyed", f"{self.name}{count}", key=f"{self.name}{count}")
            await asyncio.gather(
                self.expect(gate, "w.append", f"{self.name}{count}a"),
                self.expect(gate, "w.append", f"{self.name}{count}b"),
                self.expect(gate, "w.files", f"{self.name}{count}"),
            )
            if count % 10 == 0:
                await self.expect(gate, "w.ask", f"{self.name}{count}", code="pending")

    async def expect(self, gate: Gate, name: str, x: str, key: str | None = None, code: str = "") -> None:
        result = await gate.call(name, {"x": x}, key=key, wait=False)
        found = result.error.code if result.error else ""
        if found != code:
            write_line(self.root / "errors.txt", f"{self.name} {name} {x}: {json.dumps(result.as_dict())}")

    async def live(self, database: str) -> None:
        async with toolgate.open(
            self.root, config=CONFIG, database=database, plugins=[self.tools], keys=KEYS
        ) as gate:
            say(f"ready {self.name} {gate.services.owners.me}")
            await (self.work(gate) if self.point != "rest" else asyncio.Event().wait())


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def main() -> None:
    root, database = Path(sys.argv[1]), sys.argv[2]
    for line in iter(sys.stdin.readline, ""):
        verb, *rest = line.split()
        if verb == "reap":
            os.waitpid(int(rest[0]), 0)
            say(f"dead {rest[0]}")
            continue
        child = os.fork()
        if child:
            say(f"forked {rest[0]} {child}")
            continue
        try:
            asyncio.run(Worker(root, rest[0], rest[1]).live(database))
        except BaseException:
            write_line(root / "errors.txt", f"{rest[0]} ended: {traceback.format_exc()!r}")
        finally:
            os._exit(1)


if __name__ == "__main__":
    main()
