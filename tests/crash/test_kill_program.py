"""Kill -9 of the process that runs programs: while one runs, and between a program and the change that it proposed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolgate

from . import program_to_kill
from .program_to_kill import CONFIG, KEYS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("old")
    return root


def killed(root: Path, when: str) -> None:
    source = str(Path(toolgate.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, program_to_kill.__file__, str(root), when],
        env=os.environ | {"PYTHONPATH": source}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr


async def test_a_proposal_outlives_its_process_and_nothing_is_applied_until_it_is_approved(
    project: Path,
) -> None:
    killed(project, "asked")
    assert (project / "a.txt").read_text() == "old"
    async with toolgate.open(project, CONFIG, keys=KEYS) as gate:
        assert [row.kind for row in await gate.events()][:3] == ["asked", "committed", "started"]
        (question,) = await gate.approvals()
        assert (question.tool, "+new" in question.preview) == ("fs.apply", True)
        await gate.answer(question.id, "approve")
        applied = await gate.call("fs.apply", question.args, wait=False)
        assert applied.ok, applied.error
        assert ((project / "a.txt").read_text(), (project / "made.txt").read_text()) == ("new", "made")
        assert (await gate.undo(applied.meta.event_id or 0)).ok
        assert ((project / "a.txt").read_text(), (project / "made.txt").exists()) == ("old", False)
        assert (await gate.verify()).ok


async def test_a_program_whose_host_died_has_not_happened(project: Path) -> None:
    killed(project, "running")
    async with toolgate.open(project, CONFIG, keys=KEYS) as gate:
        end, start = (await gate.events())[:2]
        assert (end.kind, start.kind, end.tool) == ("failed", "started", "exec.python")
        assert "no way out of the sandbox" in end.body
        assert (project / "a.txt").read_text() == "old"
        assert await gate.approvals() == []
