"""`code.search` against rg: a large tree, where rg runs for both, and five files, where starting it would cost most."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import toolgate
from bench.measure import Line, alternate, median, millis
from bench.run import Run
from toolgate.workspace.search.program import find_rg

CONFIG = {
    "version": 1,
    "default_persona": "reader",
    "personas": {"reader": {"phase": "observe"}},
    "mounts": {"project": {"path": "."}},
    "cache": {"bytes": 0},  # searching is measured, not remembering
}
PATTERN = "needle in the hay"


async def search(run: Run) -> list[Line]:
    program = find_rg()
    if program is None:
        raise RuntimeError("there is no rg to measure against")
    return [
        await _compare(run, program, "7,000 files", 7000, 1.15, run.count(25, 7)),
        await _compare(run, program, "5 files", 5, 0.3, run.count(200, 40)),
    ]


async def _compare(run: Run, program: str, what: str, files: int, bar: float, count: int) -> Line:
    root = run.folder(f"search-{files}")
    _grow(root, files)
    run.tell(f"code.search on {what}")
    async with toolgate.open(root, CONFIG) as gate:

        async def ours() -> None:
            result = await gate.call("code.search", {"pattern": PATTERN})
            if not result.ok or not result.data["matches"]:
                raise RuntimeError(f"the search failed: {result}")

        async def peer() -> None:
            args = [program, "--no-config", "--no-ignore", "-n", "-i", "-C2", "-e", PATTERN, "."]
            subprocess.run(args, cwd=root, check=True, stdout=subprocess.PIPE)

        await ours()
        await peer()
        mine, theirs = await alternate(ours, peer, count)
    ratio = median(mine) / median(theirs)
    return Line(
        what=f"code.search, {what}",
        ours=millis(median(mine)),
        peer=f"{millis(median(theirs))} rg",
        ratio=ratio,
        bar=f"≤ {bar:g} ×",
        holds=ratio <= bar,
        how="a whole call through the gate with its journal on SQLite against a bare rg, in turns, medians",
    )


def _grow(root: Path, files: int) -> None:
    dice = random.Random(7)
    words = [f"word{number}" for number in range(2000)]
    for number in range(files):
        folder = root / f"d{number % 70}" / f"s{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["    " * dice.randrange(3) + " ".join(dice.choices(words, k=6)) for _ in range(160)]
        if number % 200 == 0:
            lines[80] = f"    a {PATTERN}"
        (folder / f"f{number}.py").write_text("\n".join(lines) + "\n")
