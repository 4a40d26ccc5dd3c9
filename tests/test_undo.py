"""What a call did to files can be taken back, by a human, and only where nothing came in between."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import toolgate
from toolgate.core.tool import Tool
from toolgate.gate.flow import Services
from toolgate.workspace.files import WorkspaceFiles

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import notes

CONFIG = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["note.*"]}},
}


def plugin(services: Services) -> Iterable[Tool]:
    assert isinstance(services.files, WorkspaceFiles)
    return notes.notes(services.files)


async def test_undo_restores_the_bytes_and_is_itself_undoable(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old\r\n")
    async with toolgate.open(tmp_path, CONFIG, "memory", plugins=[plugin]) as gate:
        written = await gate.call("note.write", {"path": "a.txt", "text": "new\n"})
        assert written.ok, written.error
        assert written.meta.event_id is not None
        undone = await gate.undo(written.meta.event_id)
        assert undone.ok, undone.error
        assert (tmp_path / "a.txt").read_bytes() == b"old\r\n"
        assert undone.meta.event_id is not None
        assert (await gate.undo(undone.meta.event_id)).ok
        assert (tmp_path / "a.txt").read_bytes() == b"new\n"
        assert (await gate.verify()).ok


async def test_undo_refuses_where_the_file_has_moved_on_and_touches_nothing(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", plugins=[plugin]) as gate:
        written = await gate.call("note.write", {"path": "a.txt", "text": "new\n"})
        (tmp_path / "a.txt").write_text("somebody else's\n")
        assert written.meta.event_id is not None
        undone = await gate.undo(written.meta.event_id)
        assert undone.error is not None
        assert undone.error.code == "conflict"
        assert (tmp_path / "a.txt").read_text() == "somebody else's\n"


async def test_undoing_twice_is_refused(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", plugins=[plugin]) as gate:
        written = await gate.call("note.write", {"path": "a.txt", "text": "new\n"})
        assert written.meta.event_id is not None
        assert (await gate.undo(written.meta.event_id)).ok
        again = await gate.undo(written.meta.event_id)
        assert again.error is not None
        assert "undone already" in again.error.message


@pytest.mark.parametrize("persona", ["builder", "nobody"])
async def test_only_a_human_undoes(tmp_path: Path, persona: str) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", plugins=[plugin]) as gate:
        written = await gate.call("note.write", {"path": "a.txt", "text": "new\n"})
        refused = await gate.call("ledger.undo", {"event": written.meta.event_id}, persona=persona)
        assert refused.error is not None
        assert refused.error.code == "not_allowed"
        assert (tmp_path / "a.txt").read_text() == "new\n"


async def test_a_tool_that_can_take_back_its_own_effect_is_asked_to(tmp_path: Path) -> None:
    taken_back: list[str] = []

    async def unsend(to: str) -> None:
        taken_back.append(to)

    @toolgate.tool("mail.send", writes=["outside"], undo=unsend)
    async def send(to: str) -> None:
        return None

    config = CONFIG | {"personas": {"builder": {"phase": "contribute", "allow": ["mail.*"]}}}
    async with toolgate.open(tmp_path, config, "memory", tools=[send]) as gate:
        sent = await gate.call("mail.send", {"to": "ada"})
        assert sent.meta.event_id is not None
        assert (await gate.undo(sent.meta.event_id)).ok
        assert taken_back == ["ada"]


async def test_undo_and_redo_of_a_new_file_keep_the_bits_that_somebody_gave_it(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", plugins=[plugin]) as gate:
        written = await gate.call("note.write", {"path": "a.txt", "text": "new\n"})
        (tmp_path / "a.txt").chmod(0o600)
        assert written.meta.event_id is not None
        undone = await gate.undo(written.meta.event_id)
        assert undone.meta.event_id is not None
        assert not (tmp_path / "a.txt").exists()
        assert (await gate.undo(undone.meta.event_id)).ok
        assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o600
