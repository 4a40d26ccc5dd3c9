"""Run as a program: forks, on every line it is sent, a writer that kills itself at the given step of a change.

A step is one call that alters the file system, so that the kills of a test fall between any two of them, whatever
the load of the machine. The writer does what the gate does: keep the images, journal the manifest, apply. It is
forked from this process because starting Python anew for every kill would be most of the test's time.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolgate.core.change import Change, FileChange
from toolgate.core.paths import MountPath
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts

ALTERING = ("mkdir", "rmdir", "replace", "unlink", "fchmod")


def _file(path: str, before: bytes | None, after: bytes | None, *modes: int | None) -> FileChange:
    return FileChange(MountPath.parse(path), before, after, *modes)


def _directory(path: str, before: bytes | None, after: bytes | None, *modes: int | None) -> FileChange:
    return FileChange(MountPath.parse(path), before, after, *modes, kind="directory")


LONG = b"long enough to be torn if writing could tear it\n" * 2000
FORWARD = Change(
    (
        _file("edited", LONG, LONG + b"more\n"),
        _file("bits", b"x", b"x", 0o644, 0o755),
        _file("gone", b"gone", None, 0o600),
        _directory("made", None, b"", None, 0o750),
        _file("made/empty", None, b"", None, 0o644),
        _file("old/inside", b"inside", None, 0o640),
        _directory("old", b"", None, 0o700),
        # a file becomes a directory, and a directory a file
        _file("file", b"a file", None, 0o604),
        _directory("file", None, b"", None, 0o755),
        _file("file/below", None, b"below", None, 0o644),
        _file("tree/leaf", b"leaf", None, 0o644),
        _directory("tree", b"", None, 0o711),
        _file("tree", None, b"no tree", None, 0o640),
    )
)
CHANGES = {"forward": FORWARD, "back": FORWARD.inverse()}


def deadly(function: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*args, **named)

    return call


async def write(base: Path, made: Change, steps: int) -> None:
    with Mounts({"project": base / "project"}) as mounts:
        files = WorkspaceFiles(mounts, Images(base / "images"), base)
        await files.keep(made)
        (base / "journal").write_text(json.dumps(made.manifest))
        left = [steps]
        for name in ALTERING:
            setattr(os, name, deadly(getattr(os, name), left))
        await files.apply(made)


def main() -> None:
    base = Path(sys.argv[1])
    for line in sys.stdin:
        which, steps = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(write(base, CHANGES[which], int(steps)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}", flush=True)


if __name__ == "__main__":
    main()
