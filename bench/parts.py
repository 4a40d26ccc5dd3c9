"""What the pieces cost, for information: policy, canonical JSON, start-up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import world
from bench.growth import grown
from bench.measure import Line, median, millis, timed
from bench.run import Run
from toolgate.core.canonical import canonical, digest
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.project.config import Config


async def parts(run: Run) -> list[Line]:
    run.tell("policy, canonical JSON, start-up")
    return [*_policy(run), *_canonical(run), _import(run), await _opening(run)]


def _loop(function: Callable[[], object], run: Run) -> float:
    """Seconds for one call: the fastest of several loops, for noise only ever adds."""
    count, best = run.count(5000, 1000), float("inf")
    for _ in range(7):
        begun = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - begun) / count)
    return best


def _policy(run: Run) -> list[Line]:
    if not world.REALISTIC.exists():
        return []
    policy = Config.from_dict(world.realistic()).policy(trusted=True)
    paths = (MountPath(f"project:{world.FILE_ARGS['path']}"),)
    facts = Facts("builder", world.RULED_WRITE, world.FILE_ARGS, world.RULED_WRITE.effects, paths)
    if policy.decide(facts).verdict != "allow":
        raise RuntimeError(f"the realistic policy no longer allows it: {policy.decide(facts)}")
    taken = _loop(lambda: policy.decide(facts), run)
    return [
        _info(
            "policy.decide, 30 rules",
            f"{taken * 1e6:.1f} µs",
            "a write to a path, allowed by a rule; fastest of 7 loops",
        )
    ]


def _canonical(run: Run) -> list[Line]:
    ours = _loop(lambda: canonical(world.ARGS), run)
    hashed = _loop(lambda: digest(world.ARGS), run)
    lines = [
        _info(
            "canonical JSON + SHA-256 of small args",
            f"{hashed * 1e6:.1f} µs",
            "three arguments; fastest of 7 loops",
        )
    ]
    try:
        import rfc8785
    except ImportError:
        return lines
    args: Any = world.ARGS
    theirs = _loop(lambda: rfc8785.dumps(args), run)
    how = "three arguments, against the package rfc8785; fastest of 7 loops"
    lines.append(
        Line(
            what="canonical JSON",
            ours=f"{ours * 1e6:.1f} µs",
            peer=f"{theirs * 1e6:.1f} µs",
            ratio=ours / theirs,
            how=how,
        )
    )
    return lines


def _import(run: Run) -> Line:
    def start(program: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return time.perf_counter() - begun

    programs = ("import toolgate; toolgate.open", "import toolgate", "pass")
    rounds = [[start(program) for program in programs] for _ in range(run.count(9, 3))]
    whole, name, bare = (median(times) for times in zip(*rounds, strict=True))
    return Line(
        what="start-up: importing toolgate",
        ours=f"{millis(name - bare)}; with `toolgate.open` {millis(whole - bare)}",
        peer=f"{millis(bare)} for `python -c pass`",
        how="new processes less an empty one, in turns, medians",
    )


async def _opening(run: Run) -> Line:
    root = run.scratch / "parts"
    rows = run.count(100_000, 10_000)
    await grown(run, root, rows)

    async def opened() -> None:
        async with world.gate(root):
            pass

    times = [await timed(opened) for _ in range(run.count(15, 5))]
    return _info(
        f"start-up: a gate on a ledger of {rows:,} rows",
        millis(median(times)),
        "`toolgate.open` and close, median",
    )


def _info(what: str, ours: str, how: str) -> Line:
    return Line(what=what, ours=ours, how=how)
