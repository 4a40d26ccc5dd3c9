"""Three tools of your own: one that reads, one that writes a file, one whose effect is outside.

The writer is a *plan* that works out a Change without touching anything, and a function that applies it. The gate
puts the diff of that very Change to the human, refuses it as `conflict` if the file has moved on, and after a crash
settles it by the hashes of the files. Undo is its inverse. The other one brings `preview`, `reconcile` and `undo` itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import toolgate
from toolgate.core.errors import NotFound
from toolgate.core.tool import Outcome
from toolgate.gate.flow import Services
from toolgate.workspace.files import WorkspaceFiles

CONFIG = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute"}},
    "limits": {"tool": {"bell.*": {"per_minute": 10}}},
}
RUNG: dict[str, int] = {}
"""Stands for the world outside: how often each call rang."""


@toolgate.tool("count.words", reads=["system"], cache_s=60, timeout=5.0)
async def count(texts: list[str], ctx: toolgate.Context) -> dict[str, int]:
    """Count the words of some texts."""
    found = {}
    for done, text in enumerate(texts, 1):
        found[text[:20]] = len(text.split())
        ctx.progress(done / len(texts), f"{done} of {len(texts)}")
    return found


def preview_ring(times: int) -> str:
    return f"ring the bell {times} times"


async def has_rung(times: int, ctx: toolgate.Context) -> Outcome:
    """Asked about a call that started and was not settled; `unknown` is always a possible answer."""
    return "happened" if RUNG.get(ctx.call_id) == times else "not"


async def unring(times: int, ctx: toolgate.Context) -> None:
    RUNG.pop(ctx.call_id, None)


@toolgate.tool(
    "bell.ring", writes=["outside"], risk="medium", preview=preview_ring, reconcile=has_rung, undo=unring
)
async def ring(times: int, ctx: toolgate.Context) -> str:
    """Ring the bell."""
    RUNG[ctx.call_id] = times
    return f"rang {times} times"


def todo_tools(services: Services) -> Iterable[toolgate.Tool]:
    """A plugin: handed the services, it returns tools."""
    files = services.files
    assert isinstance(files, WorkspaceFiles)

    async def plan_add(path: toolgate.MountPath, line: str) -> toolgate.Change:
        """Add a line to a list; a missing list is created."""
        before = await files.read(path, to_change=True)
        after = (before or b"") + f"- {line}\n".encode()
        return toolgate.Change((toolgate.FileChange(path, before, after),), f"add to {path.shown}")

    @toolgate.tool("todo.add", reads=["project"], writes=["project"], plan=plan_add)
    async def add(change: toolgate.Change) -> list[str]:
        await files.apply(change)
        return [str(file.path) for file in change.files]

    @toolgate.tool("todo.show", reads=["project"])
    async def show(path: toolgate.MountPath) -> str:
        """Show a list."""
        content = await files.read(path)
        if content is None:
            raise NotFound(f"there is no list {path.shown!r}", "add something to it first")
        return content.decode()

    return [add, show]


async def approved(gate: toolgate.Gate, tool: str, args: dict[str, object]) -> toolgate.Result:
    asked = await gate.call(tool, args, wait=False)
    (question,) = await gate.approvals()
    print(question.preview)
    await gate.answer(asked.data["question"], "approve")
    return await gate.call(tool, args)


async def main() -> None:
    async with toolgate.open(".", CONFIG, tools=[count, ring], plugins=[todo_tools]) as gate:
        texts = {"texts": ["one two three", "four"]}
        print((await gate.call("count.words", texts, progress=lambda part, text: print(text))).data)
        print("cached:", (await gate.call("count.words", texts)).meta.cached)
        print((await approved(gate, "todo.add", {"path": "todo.md", "line": "buy oil"})).data)
        print((await gate.call("todo.show", {"path": "todo.md"})).data.strip())
        print((await approved(gate, "bell.ring", {"times": 2})).data)
        outside = await gate.call("todo.show", {"path": "../todo.md"})
        print(outside.error and outside.error.code)


asyncio.run(main())
