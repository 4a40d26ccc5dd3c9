from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reconcile import settle_change

from .making import on_disk, put
from .writer_to_kill import NAMES, content

KILLS = 15


def state_at(version: int) -> dict[str, bytes]:
    contents = {name: content(name, version) for name in NAMES}
    return {name: found for name, found in contents.items() if found is not None}


async def test_a_writer_killed_at_any_moment_leaves_old_or_new_and_is_settled(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    put(root, dict(state_at(0)))
    version = 0
    settled_as = set()
    chance = random.Random(7)
    program = [sys.executable, str(Path(__file__).with_name("writer_to_kill.py")), str(tmp_path)]
    with (
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forker,
        Mounts({"project": root}) as mounts,
    ):
        files = WorkspaceFiles(mounts, Images(tmp_path / "images"), tmp_path)
        for _ in range(KILLS):
            kill_a_writer(forker, version, chance.uniform(0.02, 0.12))
            if not (tmp_path / "journal").exists():
                continue
            assert every_file_is_old_or_new(root, tmp_path / "journal")
            journal = json.loads((tmp_path / "journal").read_text())
            settled = await settle_change(files, journal["manifest"])
            settled_as.add(settled)
            version = journal["version"] + (settled.outcome == "happened")
            assert on_disk(root) == state_at(version)  # whole, and no leftovers
        assert forker.stdin is not None
        forker.stdin.close()
    assert "unknown" not in {settled.outcome for settled in settled_as}
    assert any("interrupted" in settled.why for settled in settled_as)  # some kills fell between two renames


def kill_a_writer(forker: subprocess.Popen[str], version: int, after: float) -> None:
    assert forker.stdin is not None
    assert forker.stdout is not None
    forker.stdin.write(f"{version}\n")
    forker.stdin.flush()
    writer = int(forker.stdout.readline())
    time.sleep(after)
    os.kill(writer, signal.SIGKILL)
    assert forker.stdout.readline() == "dead\n"


def every_file_is_old_or_new(root: Path, journal: Path) -> bool:
    version = json.loads(journal.read_text())["version"]
    found = {name: (root / name).read_bytes() if (root / name).exists() else None for name in NAMES}
    return all(found[name] in (content(name, version), content(name, version + 1)) for name in NAMES)
