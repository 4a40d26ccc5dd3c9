"""`code.search` against rg: a large tree, where rg runs for both, and five files, where starting it would cost most."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import toolgate
from bench.measure import Line, alternate, millis, quantile
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
REAL = {"few matches": r"\b(FIXME|XXX)\b", "many matches": r"def \w+\(self"}


async def search(run: Run) -> list[Line]:
    program = find_rg()
    if program is None:
        raise RuntimeError("there is no rg to measure against")
    real = run.clone("search-repository")
    lines = []
    if real is not None:
        files = (
            len(
                subprocess.run(
                    ["git", "ls-files"], cwd=real, check=True, stdout=subprocess.PIPE
                ).stdout.split(b"\n")
            )
            - 1
        )
        for what, pattern in REAL.items():
            told = f"a real repository of {files:,} files, {what}"
            lines.append(await _compare(program, told, real, pattern, 1.15, run.count(25, 9), run))
    for what, files, bar, count in (
        ("7,000 files", 7000, 1.15, run.count(25, 9)),
        ("5 files", 5, 0.3, run.count(200, 40)),
    ):
        root = run.folder(f"search-{files}")
        _grow(root, files)
        lines.append(await _compare(program, what, root, PATTERN, bar, count, run))
    return lines


async def _compare(
    program: str, what: str, root: Path, pattern: str, bar: float, count: int, run: Run
) -> Line:
    run.tell(f"code.search on {what}")
    async with toolgate.open(root, CONFIG) as gate:

        async def ours() -> None:
            result = await gate.call("code.search", {"pattern": pattern})
            if not result.ok or (pattern == PATTERN and not result.data["matches"]):
                raise RuntimeError(f"the search failed: {result}")

        async def peer() -> None:
            args = [program, "--no-config", "--no-ignore", "-n", "-i", "-C2", "-e", pattern, "."]
            subprocess.run(args, cwd=root, check=pattern == PATTERN, stdout=subprocess.PIPE)

        await ours()
        await peer()
        mine, theirs = await alternate(ours, peer, count)
    quick, peers = quantile(mine, 0.1), quantile(theirs, 0.1)
    ratio = quick / peers
    return Line(
        what=f"code.search, {what}",
        ours=f"p10 {millis(quick)}",
        peer=f"p10 {millis(peers)} rg",
        ratio=ratio,
        bar=f"≤ {bar:g} ×",
        holds=ratio <= bar,
        how=f"a whole call through the gate with its journal on SQLite against a bare rg that prints all matches, in turns, {count} of each",
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
