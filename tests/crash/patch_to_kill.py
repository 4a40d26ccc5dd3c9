"""Run as a program: makes one ten-file `fs.patch` and kills itself when so many of its files are in place.

With `undo` it does that while it takes the patch and another call back, which it has made before.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import toolgate
from toolgate.ledger.keys import Keys
from toolgate.workspace import write
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.staged import Staged, put_in_place

KEYS = Keys({1: b"k" * 32}, b"s" * 32)
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute", "allow": ["fs.patch"]}},
}
EDITED = [f"src/{number}.txt" for number in range(6)]


def before() -> dict[str, bytes]:
    return {name: f"{name}\nold\nend\n".encode() for name in [*EDITED, "gone.txt", "moved.txt"]}


def after() -> dict[str, bytes]:
    edited = {name: f"{name}\nnew\nend\n".encode() for name in EDITED}
    return edited | {"made.txt": b"made\n", "src/moved.txt": before()["moved.txt"]}


def diff() -> str:
    """Ten files: six edited, one created, one deleted, and both sides of a rename."""
    parts = [f"--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n {name}\n-old\n+new\n end\n" for name in EDITED]
    parts.append("--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+made\n")
    parts.append("--- a/gone.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-gone.txt\n-old\n-end\n")
    parts.append(
        "diff --git a/moved.txt b/src/moved.txt\nsimilarity index 100%\nrename from moved.txt\nrename to src/moved.txt\n"
    )
    return "".join(parts)


MORE = "--- a/made.txt\n+++ b/made.txt\n@@ -1 +1 @@\n-made\n+made again\n--- /dev/null\n+++ b/deep/er.txt\n@@ -0,0 +1 @@\n+deep\n"


async def main(root: Path, last: int, undo: bool) -> None:
    placed = 0
    if undo:
        async with toolgate.open(root, CONFIG, keys=KEYS) as gate:
            await gate.call("fs.patch", {"diff": diff()}, conversation="talk")
            await gate.call("fs.patch", {"diff": MORE}, conversation="talk")

    def place(mounts: Mounts, item: Staged) -> None:
        nonlocal placed
        if placed == last:
            os.kill(os.getpid(), signal.SIGKILL)
        put_in_place(mounts, item)
        placed += 1

    write.put_in_place = place
    async with toolgate.open(root, CONFIG, keys=KEYS) as gate:
        if last == 10:  # all in place, and dead before anybody is told
            gate.services.ledger.do = lambda work: (  # type: ignore[method-assign]
                os.kill(os.getpid(), signal.SIGKILL)
                if placed == last
                else type(gate.services.ledger).do(gate.services.ledger, work)
            )
        await (gate.undo(conversation="talk") if undo else gate.call("fs.patch", {"diff": diff()}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), "undo" in sys.argv))
