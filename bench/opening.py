"""A confined open against `os.open`: the same files, the same depth, opened for reading and closed again."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Line, quantile
from bench.run import Run
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import best_opener, open_by_walking, open_file
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import open_to_read

BAR = 2.0
PLACES = [f"src/part{number % 5}/inner/file{number}.py" for number in range(40)]


async def opening(run: Run) -> list[Line]:
    run.tell("confined open against os.open")
    root = run.folder("opening")
    for name in PLACES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    with Mounts({"project": root}) as mounts, Mounts({"project": root}, open_by_walking) as walked:
        confined = "openat2" if best_opener() is not open_by_walking else "a walk by handles"
        plain, typed = _plain(root), _typed(root)
        made = [
            (f"confined open ({confined})", _confined(mounts), plain, "`os.open`", BAR),
            ("confined open of a regular file", _regular(mounts), typed, "`os.open` and `os.fstat`", BAR),
            ("the same by the rules of its mount", _ruled(mounts), typed, "`os.open` and `os.fstat`", None),
            ("confined open where the kernel has no openat2", _confined(walked), plain, "`os.open`", None),
        ]
        return [_compare(run, *each) for each in made]


Opens = Callable[[], None]


def _confined(mounts: Mounts) -> Opens:
    [mount] = mounts
    opener, handle = mount.root.opener, mount.root.handle

    def work() -> None:
        for name in PLACES:
            os.close(opener(handle, name, os.O_RDONLY, False))

    return work


def _regular(mounts: Mounts) -> Opens:
    [mount] = mounts

    def work() -> None:
        for name in PLACES:
            os.close(open_file(mount.root, name, name, follow=False))

    return work


def _ruled(mounts: Mounts) -> Opens:
    paths = [MountPath.parse(name) for name in PLACES]

    def work() -> None:
        for path in paths:
            os.close(open_to_read(mounts, path))

    return work


def _plain(root: Path) -> Opens:
    paths = [str(root / name) for name in PLACES]

    def work() -> None:
        for path in paths:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    return work


def _typed(root: Path) -> Opens:
    paths = [str(root / name) for name in PLACES]

    def work() -> None:
        for path in paths:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stat.S_ISREG(os.fstat(handle).st_mode)
            os.close(handle)

    return work


def _compare(run: Run, what: str, ours: Opens, plain: Opens, against: str, bar: float | None) -> Line:
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(run.count(2000, 300)):
        for work, times in ((ours, mine), (plain, theirs)):
            begun = time.perf_counter()
            work()
            times.append((time.perf_counter() - begun) / len(PLACES))
    quick, peer = quantile(mine, 0.1), quantile(theirs, 0.1)
    return Line(
        what=what,
        ours=f"p10 {quick * 1e6:.1f} µs",
        peer=f"p10 {peer * 1e6:.1f} µs",
        ratio=quick / peer,
        bar=f"≤ {bar:g} ×" if bar else "–",
        holds=quick / peer <= bar if bar else None,
        how=f"open and close of a file three directories down, against {against} by its absolute path, "
        f"{len(PLACES)} files in a round, {run.count(2000, 300):,} rounds of each in turns",
    )
