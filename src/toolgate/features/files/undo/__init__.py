"""`ledger.undo`: take back what recorded calls did to files, or what a tool knows how to take back.

It is a call like any other: planned, shown, recorded, and undoable itself. Only a human makes it. `choose.py` says
which calls are meant, `plan.py` makes one Change of them.
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any, NotRequired

from pydantic import AliasChoices, BeforeValidator, Field
from typing_extensions import TypedDict  # pydantic reads those of `typing` only from 3.12 on

from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.names import Registry
from toolgate.core.ports import Files
from toolgate.core.tool import Tool, tool
from toolgate.features.files.undo.plan import Planner
from toolgate.ledger.effects import Effect, Effects
from toolgate.ledger.ledger import Ledger


class Restored(TypedDict):
    path: str
    op: str
    kind: str


class Undone(TypedDict):
    events: list[int]
    files: list[Restored]
    notes: NotRequired[list[str]]
    """What tools could not bring back of what they took back."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, int | str) else value


Events = Annotated[
    list[Annotated[int, Field(ge=1)]],
    BeforeValidator(_listed),
    Field(
        min_length=1,
        max_length=10_000,
        validation_alias=AliasChoices("events", "event"),
        description="The `event_id` of each call to take back.",
    ),
]


def toolset(registry: Registry, ledger: Ledger, files: Files) -> list[Tool]:
    planner = Planner(registry, ledger, files)

    async def plan(events: Events) -> Change:
        """Take back the effects of recorded events, as one. Refuses, touching nothing, where things have moved on."""
        return await planner.plan(events)

    @tool(
        "ledger.undo", reads=["ledger"], writes=["project", "garden", "scratch"], plan=plan, human=True,
        risk="medium", timeout=120.0, summarize=_in_words,
    )  # fmt: skip
    async def undo(change: Change) -> Undone:
        if change.files:
            await files.apply(change)
        notes: list[str] = []
        for event in change.undoes if not change.files else ():
            effect = await Effects(ledger).of(event)
            if not effect.manifest:
                told = await _ask_tool(registry.resolve(effect.started.tool), effect)
                notes += [told] if told else []
        done = [Restored(path=str(file.path), op=file.op, kind=file.kind) for file in change.files]
        undone = Undone(events=list(change.undoes), files=done)
        return Undone(**undone, notes=notes) if notes else undone

    return [undo]


def _in_words(data: Any) -> str:
    events, files = data["events"], len(data["files"])
    return f"Took back event{'s' * (len(events) != 1)} {', '.join(map(str, events))}: {files} file{'s' * (files != 1)}"


async def _ask_tool(subject: Tool, effect: Effect) -> str:
    """With the original arguments and the original call's Context; what the tool has to say about it."""
    assert subject.undo is not None
    args = subject.validate(effect.body["args"])
    named: dict[str, Any] = {name: getattr(args, name) for name in type(args).model_fields}
    wanted = subject.wants.get(subject.undo)
    if wanted:
        row = effect.started
        named[wanted] = Context(row.call, row.persona, row.tool, row.conversation)
    answer = subject.undo(**named)
    if inspect.isawaitable(answer):
        answer = await answer
    return answer if isinstance(answer, str) else ""
