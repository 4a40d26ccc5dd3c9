from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from toolgate.core.context import Context
from toolgate.core.errors import BlockedPath, InvalidArgs, NotFound
from toolgate.core.tool import Tool
from toolgate.workspace.files import WorkspaceFiles

from .making import at, on_disk


def example() -> Any:
    file = Path(__file__).parents[2] / "examples" / "notes.py"
    spec = importlib.util.spec_from_file_location("notes_example", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its annotations are resolved through sys.modules, as those of any imported toolset are.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tools(files: WorkspaceFiles, tmp_path: Path) -> dict[str, Tool]:
    return {made.name: made for made in example().notes(files, tmp_path / "outbox.txt")}


async def call(tool: Tool, **raw: Any) -> Any:
    """What the gate does, without what makes it a gate."""
    args = tool.validate(raw)
    values = {name: getattr(args, name) for name in type(args).model_fields}
    if tool.plan is not None:
        return await tool.run(change=await tool.plan(**values))
    return await tool.run(**values)


async def test_notes_are_written_appended_to_read_and_deleted(tools: dict[str, Tool], project: Path) -> None:
    await call(tools["note.write"], path="notes/a.md", text="one")
    await call(tools["note.append"], path="notes/a.md", text="two")
    note = await call(tools["note.read"], path="notes/a.md")
    assert (note.path, note.text) == ("project:notes/a.md", "one\n\ntwo\n")
    await call(tools["note.delete"], path="notes/a.md")
    assert on_disk(project) == {}
    with pytest.raises(NotFound):
        await call(tools["note.read"], path="notes/a.md")


async def test_planning_touches_nothing_and_its_change_can_be_undone(
    tools: dict[str, Tool], files: WorkspaceFiles, project: Path
) -> None:
    plan = tools["note.write"].plan
    assert plan is not None
    planned = await plan(path=at("a.md"), text="one")
    assert on_disk(project) == {}
    await tools["note.write"].run(change=planned)
    await files.apply(planned.inverse())
    assert on_disk(project) == {}


async def test_a_plan_already_refuses_what_could_not_be_written(
    tools: dict[str, Tool], project: Path
) -> None:
    (project / "link").symlink_to("a.md")
    plan = tools["note.write"].plan
    assert plan is not None
    with pytest.raises(BlockedPath):
        await plan(path=at("link"), text="x")


def test_the_arguments_of_a_planned_tool_are_those_of_its_plan(tools: dict[str, Tool]) -> None:
    assert set(tools["note.write"].input_schema["properties"]) == {"path", "text"}
    assert set(tools["note.send"].input_schema["properties"]) == {"to", "text"}
    assert all(tools[name].undoable for name in ("note.write", "note.append", "note.delete", "note.send"))
    with pytest.raises(InvalidArgs):
        tools["note.write"].validate({"path": "a", "text": "x", "more": 1})


async def test_sending_can_be_reconciled_and_undone(tools: dict[str, Tool], tmp_path: Path) -> None:
    send = tools["note.send"]
    assert send.reconcile is not None
    assert send.undo is not None
    first, second = (Context(call_id=f"c_{n}", persona="me", tool="note.send") for n in (1, 2))
    message = {"to": "ada", "text": "two\nlines\u2028and a separator"}
    assert await send.reconcile(**message, context=first) == "not"
    sent = await send.run(**message, context=first)
    await send.run(**message, context=second)
    assert sent.id == "c_1"
    assert await send.reconcile(**message, context=first) == "happened"
    await send.undo(**message, context=first)
    assert await send.reconcile(**message, context=first) == "not"
    assert await send.reconcile(**message, context=second) == "happened"
    with pytest.raises(NotFound):
        await send.undo(**message, context=first)


async def test_a_message_cut_short_is_neither_sent_nor_unsent(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "outbox.txt").write_text("c_1\tada\thel")
    reconcile = tools["note.send"].reconcile
    assert reconcile is not None
    context = Context(call_id="c_1", persona="me", tool="note.send")
    assert await reconcile(to="ada", text="hello", context=context) == "unknown"
