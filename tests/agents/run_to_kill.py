"""A run that is killed at a given point and resumed by another process; told as JSON what came of each.

`python -m agents.run_to_kill DIRECTORY HOW_MANY SEED` forks a child for each attempt, before anything of asyncio has begun.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.world import call, calls, config
from toolgate import Tool, app, tool
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.core.errors import Conflict
from toolgate.core.names import Registry
from toolgate.features.agents import driver
from toolgate.features.agents.store import RunStore
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter
from toolgate.storage.sqlite import SqliteBackend
from toolgate.workspace import write
from toolgate.workspace.staged import put_in_place

SCRIPT = [
    calls(call("fs.write", path="one.txt", content="1\n"), text="First a file."),
    calls(call("t.mark", x="a"), call("t.mark", x="b")),
    calls(call("fs.append", path="one.txt", text="2\n"), call("t.ask", x="c")),
    calls(call("t.look", x="d"), call("t.look", x="e")),
    "All is written.",
]
USED = ("fs.append", "fs.write", "t.ask", "t.look", "t.mark")
POLICY = {
    "personas": {"ada": {"phase": "collaborate", "allow": ["t.mark", "t.look", "fs.*"]}},
    "policy": {"rules": [{"name": "asked", "persona": "*", "tools": ["t.ask"], "decision": "ask"}]},
}


class Points:
    """Counts the moments of a run, and kills the process at one of them."""

    def __init__(self, fatal: int) -> None:
        self.count, self._fatal = 0, fatal
        self.placed: list[int] = []
        """Those just after a file came into its place: it is there, and the ledger does not know."""

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **more: Any) -> Any:
            self()
            value = await work(*args, **more)
            self()
            return value

        return wrapped

    def beside(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **more: Any) -> Any:
            self()
            value = work(*args, **more)
            if work is put_in_place:
                self.placed.append(self.count + 1)
            self()
            return value

        return wrapped


def toolset(root: Path, point: Points) -> list[Tool]:
    def mark(x: str) -> str:
        point()
        with open(root / "marks", "a") as file:
            file.write(f"{x}\n")
        point()
        return f"marked {x}"

    @tool("t.mark", writes=["outside"])
    async def marking(x: str) -> str:
        """Leave a mark that no reconciliation knows of."""
        return mark(x)

    @tool("t.ask", writes=["outside"])
    async def asking(x: str) -> str:
        """The same, after a question."""
        return mark(x)

    @tool("t.look", reads=["system"])
    async def look(x: str) -> str:
        """Look."""
        point()
        return x

    return [marking, asking, look]


async def attempt(root: Path, fatal: int) -> dict[str, Any]:
    point = Points(fatal)
    RunStore.step = point.around(RunStore.step)  # type: ignore[method-assign,assignment]
    RunStore.keep = point.around(RunStore.keep)  # type: ignore[method-assign,assignment]
    driver.Drive._ask_now = point.around(driver.Drive._ask_now)  # type: ignore[method-assign,assignment]
    SqliteBackend._commit = point.beside(SqliteBackend._commit)  # type: ignore[method-assign,assignment]
    write.put_in_place = point.beside(put_in_place)
    Registry.__iter__ = lambda self: iter([self.resolve(name) for name in USED])  # type: ignore[method-assign] # all take a second
    async with app.open(
        root, config(**POLICY), str(root / ".toolgate" / "ledger.db"), tools=toolset(root, point)
    ) as gate:
        agents = gate.feature("agents")
        agents.models.given["model"] = ScriptedModel(SCRIPT, "model")
        known = await agents.store.newest(1)
        if not known:
            run = await agents.drive(await agents.start("write it"))
        elif known[0].ended:
            run = known[0]
        else:
            run = await agents.resume(known[0].id)
        while run.state == "waiting":
            point()
            await gate.answer(run.waiting, "approve", by="test", channel="test")
            point()
            try:
                run = await agents.resume(run.id)
            except Conflict:
                run = await agents.store.get(run.id)
        results = [step["body"] for step in await agents.store.steps(run.id) if step["kind"] == "result"]
        started = [parsed(row)["digest"] for row in await gate.events(Filter(kinds=("started",)))]
        report = await gate.verify()
        return {
            "state": run.state, "answer": run.answer, "spent": [run.spent["asks"], run.spent["calls"]], "points": point.count, "placed": point.placed, "unknown": await gate.unknown_calls(),
            "marks": (root / "marks").read_text().split() if (root / "marks").exists() else [],
            "file": (root / "one.txt").read_text() if (root / "one.txt").exists() else "",
            "results": [[body["tool"], body["code"], body["text"]] for body in results], "started": len(started),
            "distinct": len(set(started)), "verified": report.ok,
        }  # fmt: skip


def forked(root: Path, fatal: int) -> dict[str, Any] | None:
    """What the attempt tells; None if it was killed."""
    root.mkdir(exist_ok=True)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            told = asyncio.run(attempt(root, fatal)) | {"modules": list(sys.modules)}
            with os.fdopen(write, "w") as pipe:
                json.dump(told, pipe)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0, f"the attempt failed, killed at {fatal}"
    found: dict[str, Any] = json.loads(told)
    return found


def main() -> None:
    """First the undisturbed run; then one for each of so many points, chosen by a seed but for the first, and what a second
    process makes of it."""
    base, most, seed = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    whole = forked(base / "whole", 0)
    assert whole is not None
    for name in whole.pop("modules"):  # once, before the other forks
        with suppress(ImportError):
            importlib.import_module(name)
    print(json.dumps(whole), flush=True)
    points = list(range(1, whole["points"] + 1))
    random.Random(seed).shuffle(points)
    for fatal in dict.fromkeys([whole["placed"][0], *points[: most - 1]]):
        root = base / str(fatal)
        killed, after = forked(root, fatal) is None, forked(root, 0)
        print(json.dumps({"at": fatal, "killed": killed, "after": after}), flush=True)


if __name__ == "__main__":
    main()
