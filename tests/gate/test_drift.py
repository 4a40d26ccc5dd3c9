from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.gate.flow import Services
from toolgate.project.plugins import Plugin
from toolgate.workspace.files import WorkspaceFiles

CONFIG = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["note.*"]}},
}


def writer_disturbed_by(text: str, project: Path) -> Plugin:
    """A tool whose file is changed by somebody else after it was planned."""

    def plugin(services: Services) -> list[toolgate.Tool]:
        files = services.files
        assert isinstance(files, WorkspaceFiles)

        async def plan(path: toolgate.MountPath) -> toolgate.Change:
            before = await files.read(path, to_change=True)
            return toolgate.Change((toolgate.FileChange(path, before, b"planned"),), "write")

        @toolgate.tool("note.write", writes=["project"], plan=plan)
        async def write(change: toolgate.Change) -> str:
            (project / "a.md").write_text(text)
            await files.apply(change)
            return "written"

        return [write]

    return plugin


async def test_a_file_that_moved_on_after_the_plan_is_a_conflict_and_not_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    plugin = writer_disturbed_by("somebody else's", project)
    async with toolgate.open(project, CONFIG, plugins=[plugin]) as gate:
        result = await gate.call("note.write", {"path": "a.md"})
        assert result.error is not None
        assert result.error.code == "conflict"
        assert (project / "a.md").read_text() == "somebody else's"
        assert (await gate.events())[0].kind == "failed"
        assert (await gate.verify()).ok
