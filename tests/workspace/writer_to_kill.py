"""Run as a program: forks, on every line it is sent, a writer that changes files until it is killed.

The writer does what the gate does: keep the images, journal the manifest, apply. It is forked from this process
because starting Python anew for every kill would be most of the test's time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from toolgate.core.change import Change, FileChange
from toolgate.core.paths import MountPath
from toolgate.workspace import write
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.staged import Staged, put_in_place

NAMES = ("a", "b", "deep/c", "deep/d")


def content(name: str, version: int) -> bytes | None:
    """Long enough to be torn if writing could tear it; one file comes and goes."""
    if name == "b" and version % 2:
        return None
    return f"{name} {version}\n".encode() * 5000


def step(version: int) -> Change:
    return Change(
        tuple(
            FileChange(MountPath.parse(name), content(name, version), content(name, version + 1))
            for name in NAMES
        )
    )


def slow_put_in_place(mounts: Mounts, item: Staged) -> None:
    """As on a slow disk: renames are so quick that hardly a kill would fall between two of them."""
    put_in_place(mounts, item)
    time.sleep(0.005)


async def write_for_ever(base: Path, version: int) -> None:
    with Mounts({"project": base / "project"}) as mounts:
        files = WorkspaceFiles(mounts, Images(base / "images"), base)
        while True:
            made = step(version)
            await files.keep(made)
            journal = {"version": version, "manifest": made.manifest}
            (base / "journal.new").write_text(json.dumps(journal))
            (base / "journal.new").replace(base / "journal")
            await files.apply(made)
            version += 1


def main() -> None:
    base = Path(sys.argv[1])
    write.put_in_place = slow_put_in_place
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(write_for_ever(base, int(line)))
        print(child, flush=True)
        os.waitpid(child, 0)
        print("dead", flush=True)


if __name__ == "__main__":
    main()
