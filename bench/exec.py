"""A Python program in the sandbox against the bare interpreter: warm, cold, and twenty at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys

from bench.measure import Line, Step, alternate, median, millis, timed
from bench.run import Run
from toolgate.sandbox import probe
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job
from toolgate.sandbox.program import readable

BAR = 0.3
CROWD = 20
NOTHING = Job("python", "pass")
PAUSE = 0.03
"""Between two, as between the calls of an agent: in it the next process is made ready."""


async def exec_python(run: Run) -> list[Line]:
    run.tell("exec.python against a bare interpreter")
    warm, cold = Host(), Host(warm=0)
    try:
        for host in (warm, cold):
            await host.run(NOTHING)
        count = run.count(100, 20)
        how = f"median of {count}, alternating, mode {warm.mode}"
        ours, bare = await alternate(_paused(_job(warm)), _paused(_bare), count)
        lines = [_line("exec.python, warm, whole job", ours, bare, "`python -c pass`", how, BAR)]
        ours, bare = await alternate(_paused(_job(cold)), _paused(_bare), count)
        lines.append(_line("exec.python, cold, whole job", ours, bare, "`python -c pass`", how))
        ours, bare = await alternate(_paused(_job(warm)), _paused(_isolated), count)
        lines.append(_line("exec.python, warm", ours, bare, "a bare subprocess, `python -I -S -c pass`", how))
        lines.append(await _against_bubblewrap(warm, count, how))
        lines.append(await _crowd(warm, run.count(10, 3)))
    finally:
        await warm.close()
        await cold.close()
    return lines


def _job(host: Host) -> Step:
    async def step() -> None:
        outcome = await host.run(NOTHING)
        assert outcome.exit_code == 0, outcome

    return step


async def _bare() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


async def _isolated() -> None:
    subprocess.run([probe.interpreter(), "-I", "-S", "-c", "pass"], check=True)


def _paused(step: Step) -> Step:
    """The pause is added to both alike and taken off again by `_line`."""

    async def both() -> None:
        await asyncio.sleep(PAUSE)
        await step()

    return both


def _line(
    what: str, ours: list[float], peer: list[float], name: str, how: str, bar: float | None = None
) -> Line:
    mine, theirs = median(ours) - PAUSE, median(peer) - PAUSE
    ratio = mine / theirs
    return Line(
        what=what, ours=millis(mine), how=how, peer=f"{name}: {millis(theirs)}", ratio=ratio,
        bar="–" if bar is None else f"≤ {bar} ×", holds=None if bar is None else ratio <= bar,
    )  # fmt: skip


async def _against_bubblewrap(host: Host, count: int, how: str) -> Line:
    bwrap = shutil.which("bwrap")
    what = "exec.python, warm"
    if bwrap is None:
        return Line(
            what=what, ours="–", how="bubblewrap is not installed here", peer="bubblewrap: not installed"
        )
    binds = [part for path in readable() for part in ("--ro-bind", path, path)]
    links = [
        part for name in ("bin", "lib", "lib64") if os.path.islink(f"/{name}")
        for part in ("--symlink", os.readlink(f"/{name}"), f"/{name}")
    ]  # fmt: skip
    python = os.path.realpath(probe.interpreter())
    command = [bwrap, "--unshare-all", *binds, *links, "--ro-bind", python, python, "--proc", "/proc", "--dev", "/dev",
               "--", python, "-I", "-S", "-c", "pass"]  # fmt: skip

    async def wrapped() -> None:
        subprocess.run(command, check=True, capture_output=True)

    ours, peer = await alternate(_paused(_job(host)), _paused(wrapped), count)
    return _line(what, ours, peer, "bubblewrap and `python -I -S`", how)


async def _crowd(host: Host, count: int) -> Line:
    async def ours() -> None:
        await asyncio.gather(*(host.run(NOTHING) for _ in range(CROWD)))

    async def bare() -> None:
        async def one() -> None:
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")
            await process.wait()

        await asyncio.gather(*(one() for _ in range(CROWD)))

    mine, theirs = [], []
    for _ in range(count):
        mine.append(await timed(ours))
        theirs.append(await timed(bare))
    return Line(
        what=f"{CROWD} programs at once", ours=millis(median(mine)), how=f"median of {count}, until the last has ended",
        peer=f"{CROWD} × `python -c pass`: {millis(median(theirs))}", ratio=median(mine) / median(theirs),
    )  # fmt: skip
