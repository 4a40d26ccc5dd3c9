"""Running an example as its reader would: a program of its own, in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"


def run(name: str, *args: str, cwd: Path, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TOOLGATE_STATE_DIR": str(cwd.parent / f"{cwd.name}-state"),
        "PYTHONPATH": str(REPOSITORY / "src"),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, "-W", "error", *python, str(EXAMPLES / name), *args],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def output(name: str, cwd: Path, *args: str) -> str:
    done = run(name, *args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
