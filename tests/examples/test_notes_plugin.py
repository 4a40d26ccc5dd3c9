from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import toolgate
from toolgate.project import trust
from toolgate.project.config import state_dir

from .running import EXAMPLES


async def test_the_notes_are_a_plugin_of_a_trusted_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(EXAMPLES / "notes.py", project)
    (project / "toolgate.yaml").write_text(
        "version: 1\ndefault_persona: builder\npersonas: {builder: {phase: contribute}}\nplugins: [./notes.py]\n"
    )
    trust.trust(project, state_dir())
    note = {"path": "notes/a.md", "text": "hello\n"}
    async with toolgate.open(project) as gate:
        asked = await gate.call("note.write", note, wait=False)
        (question,) = await gate.approvals()
        assert question.preview == "--- /dev/null\n+++ b/notes/a.md\n@@ -0,0 +1 @@\n+hello"
        await gate.answer(asked.data["question"], "approve")
        written = await gate.call("note.write", note)
        assert written.ok, written.error
        assert (await gate.call("note.read", {"path": "notes/a.md"})).data["text"] == "hello\n"
        assert written.meta.event_id is not None
        assert (await gate.undo(written.meta.event_id)).ok
        assert not (project / "notes" / "a.md").exists()
        assert (await gate.verify()).ok
