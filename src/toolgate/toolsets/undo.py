"""`ledger.undo`: take back what a recorded call did to files, or what its tool knows how to take back.

It is a call like any other: planned, shown, recorded, and undoable itself. Only a human makes it.
"""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

from pydantic import Field

from toolgate.core.canonical import canonical
from toolgate.core.change import DIRECTORY, Change, FileChange
from toolgate.core.context import Context
from toolgate.core.errors import Conflict, LedgerBroken, NotFound
from toolgate.core.names import Registry
from toolgate.core.ports import Files
from toolgate.core.tool import Tool, tool
from toolgate.ledger.chain import fault_of
from toolgate.ledger.ledger import Ledger
from toolgate.secrets.mask import MASK
from toolgate.storage.port import Filter, Row


def toolset(registry: Registry, ledger: Ledger, files: Files) -> list[Tool]:
    async def plan(event: Annotated[int, Field(ge=1)]) -> Change:
        """Take back the effect of a recorded event. Refuses, touching nothing, where things have moved on."""
        started, settled = await _effect(ledger, event)
        manifest = json.loads(started.body).get("change")
        if not manifest:
            if registry.resolve(started.tool).undo is None:
                raise Conflict(
                    f"{started.tool} changed no files and cannot take back event {event}", "undo it by hand"
                )
            args = json.loads(started.body)["args"]
            if MASK in canonical(args):
                raise Conflict(
                    f"the arguments of event {event} were masked, so {started.tool} cannot take it back",
                    "undo it by hand",
                )
            return Change((), f"take back {started.tool} {canonical(args)}", settled.seq)
        try:
            done = await files.load(manifest)
        except NotFound as error:
            raise NotFound(f"event {event} can no longer be undone: {error.message}", error.fix) from None
        now = await files.hashes([file.path for file in done.files])
        moved = [file.path.shown for file, found in zip(done.files, now, strict=True) if _moved(file, found)]
        if moved:
            raise Conflict(
                f"{', '.join(moved)} is no longer as event {event} left it, so nothing was touched",
                "undo what came after it first, or edit the file by hand",
            )
        back = done.inverse()
        return Change(back.files, f"undo event {settled.seq}", settled.seq)

    @tool("ledger.undo", reads=["ledger"], writes=["project"], plan=plan, human=True, risk="medium")
    async def undo(change: Change, ctx: Context) -> dict[str, Any]:
        if change.files:
            await files.apply(change)
            return {"event": change.undoes, "files": [file.path.shown for file in change.files]}
        started, _ = await _effect(ledger, change.undoes)
        await _ask_tool(registry.resolve(started.tool), started)
        return {"event": change.undoes, "files": []}

    return [undo]


def _moved(file: FileChange, found: str | None) -> bool:
    """A directory has no content to move on from; only something else in its place stands in the way."""
    if file.kind == "directory":
        return found not in (None, DIRECTORY)
    return found != file.after_hash


async def _effect(ledger: Ledger, event: int) -> tuple[Row, Row]:
    """The started and the committed row of the call that this event belongs to."""
    found = await ledger.backend.rows(Filter(after=event - 1, before=event + 1))
    if not found or not found[0].call:
        raise NotFound(f"there is no call with event {event}", "`toolgate ledger tail` shows events")
    rows = await ledger.backend.rows(Filter(call=found[0].call))
    started = next((row for row in rows if row.kind == "started"), None)
    settled = next((row for row in rows if row.kind == "committed"), None)
    if started is None or settled is None:
        raise Conflict(
            f"event {event} had no effect: its call is {rows[-1].kind}", "there is nothing to undo"
        )
    for row in (started, settled):
        fault = fault_of(row, row.seq, row.prev, ledger.keys)
        if fault:
            raise LedgerBroken(f"event {row.seq} cannot be undone: {fault}", "run `toolgate ledger verify`")
    if await ledger.backend.rows(Filter(ref=undone_ref(settled.seq), kinds=("undone",), limit=1)):
        redone = "undo the undoing to have it back"
        raise Conflict(f"event {settled.seq} is undone already", redone)
    return started, settled


def undone_ref(seq: int) -> str:
    return f"event:{seq}"


async def _ask_tool(subject: Tool, started: Row) -> None:
    """With the original arguments and the original call's Context."""
    assert subject.undo is not None
    args = subject.validate(json.loads(started.body)["args"])
    named = {name: getattr(args, name) for name in type(args).model_fields}
    wanted = subject.wants.get(subject.undo)
    if wanted:
        named[wanted] = Context(started.call, started.persona, started.tool, started.conversation)
    answer = subject.undo(**named)
    if inspect.isawaitable(answer):
        await answer
