"""`python -m bench [NAME ...] [--quick]`: measure, print, and write RESULTS.md if everything was measured."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from bench import results, world
from bench.agents import agents
from bench.crowd import crowd
from bench.durable import durable
from bench.exec import exec_python
from bench.garden import garden
from bench.git import git
from bench.growth import growth
from bench.hostile import stalls
from bench.javascript import javascript_program
from bench.lean import lean
from bench.mcp import mcp
from bench.measure import Line
from bench.mix import mix
from bench.opening import opening
from bench.overhead import overhead
from bench.parts import parts
from bench.proof import proof
from bench.recall import recall
from bench.recall_sizes import recall_sizes
from bench.run import Benchmark, Run
from bench.search import search
from bench.server import Postgres
from bench.startup import startup
from bench.wires import wires_speed

BENCHMARKS: dict[str, Benchmark] = {
    "gate": overhead, "durable": durable, "crowd": crowd, "mix": mix, "verify": proof, "growth": growth, "parts": parts,
    "git": git, "search": search, "open": opening, "startup": startup, "mcp": mcp, "lean": lean,
    "agents": agents, "wires": wires_speed, "stalls": stalls, "exec": exec_python, "javascript": javascript_program,
    "garden": garden, "recall": recall, "recall-sizes": recall_sizes,
}  # fmt: skip


def main() -> None:
    options = _options()
    names = options.names or list(BENCHMARKS)
    begun = time.perf_counter()
    with ExitStack() as stack:
        progress = stack.enter_context(_progress())
        task = progress.add_task("", total=len(names))
        postgres = Postgres(stack, lambda text: progress.update(task, description=text))
        scratch = stack.enter_context(world.scratch())
        run = Run(
            scratch, options.quick, lambda text: progress.update(task, description=text), postgres.database,
            options.repository,
        )  # fmt: skip
        lines: list[Line] = []
        for name in names:
            lines += asyncio.run(BENCHMARKS[name](run))  # type: ignore[arg-type]
            progress.advance(task)
        version = postgres.version
    _print(lines)
    elsewhere = ["TOOLGATE_BENCH_DISK=…"] if os.environ.get("TOOLGATE_BENCH_DISK") else []
    command = " ".join(
        [*elsewhere, "python -m bench", *options.names, *(["--quick"] if options.quick else [])]
    )
    page = results.as_markdown(lines, command, version, time.perf_counter() - begun)
    if not options.names:
        results.FILE.write_text(page)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="a short, rougher run")
    parser.add_argument(
        "--repository", type=Path, default=os.environ.get("TOOLGATE_BENCH_REPOSITORY") or None, metavar="PATH",
        help="a git repository with many files and a long history, for `git` and `search`; without it one is "
        "generated (also TOOLGATE_BENCH_REPOSITORY)",
    )  # fmt: skip
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    return options


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(), MofNCompleteColumn(), BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip


def _print(lines: list[Line]) -> None:
    table = Table("what", "ours", "peer", "ratio", "bar", "holds")
    for line in lines:
        ratio = "–" if line.ratio is None else f"{line.ratio:.2f} ×"
        colour = {"yes": "green", "no": "red"}.get(line.verdict, "default")
        table.add_row(line.what, line.ours, line.peer, ratio, line.bar, f"[{colour}]{line.verdict}[/]")
    Console().print(table)


if __name__ == "__main__":
    main()
