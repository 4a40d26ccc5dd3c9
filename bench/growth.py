"""Whether a call costs the same in a short ledger and in a long one."""

from __future__ import annotations

from pathlib import Path

import toolgate
from bench import world
from bench.measure import Line, median, millis, timed
from bench.run import Run
from toolgate.core.tool import Tool
from toolgate.facade import Gate

SIZES = (1_000, 100_000, 1_000_000)
QUICK = (1_000, 20_000)


async def growth(run: Run) -> list[Line]:
    """One ledger per size, all open at once and called in turns, so that noise hits them alike."""
    sizes = QUICK if run.quick else SIZES
    folder = run.folder("growth")
    for size in sizes:
        await grown(run, folder / str(size), size)
    run.tell("calls in ledgers of " + ", ".join(f"{size:,}" for size in sizes) + " rows")
    times = await _call_all(run, folder, sizes)
    lines = []
    for size in sizes:
        for tool, name in ((world.EFFECT, "effectful, durable"), (world.READ, "read")):
            mine, first = median(times[size, tool.name]), median(times[sizes[0], tool.name])
            lines.append(_line(size, sizes[0], name, mine, first))
    return lines


async def grown(run: Run, root: Path, rows: int) -> None:
    """A project whose gate was opened once, long ago, and has been in use since."""
    root.mkdir()
    async with toolgate.open(root, world.CONFIG, tools=world.TOOLS, clock=world.Past()) as gate:
        ledger = gate.services.ledger
        await world.grow(ledger, rows, lambda done: run.tell(f"growing a ledger: {done:,} of {rows:,} rows"))


async def _call_all(run: Run, folder: Path, sizes: tuple[int, ...]) -> dict[tuple[int, str], list[float]]:
    times: dict[tuple[int, str], list[float]] = {}
    rounds, calls = run.count(12, 6), 25
    for turn in range(rounds + 1):
        for size in sizes:
            async with world.gate(folder / str(size)) as gate:
                for tool in (world.EFFECT, world.READ):
                    await world.checked(gate, tool, world.ARGS)
                    taken = [await timed(lambda g=gate, t=tool: _call(g, t)) for _ in range(calls)]  # type: ignore[misc]
                    if turn:  # the first turn warms up
                        times.setdefault((size, tool.name), []).extend(taken)
    return times


async def _call(gate: Gate, tool: Tool) -> object:
    return await gate.call(tool.name, world.ARGS)


def _line(size: int, smallest: int, name: str, mine: float, first: float) -> Line:
    rate = first / mine
    return Line(
        what=f"call in a ledger of {size:,} rows: {name}",
        ours=f"p50 {millis(mine)} = {1 / mine:,.0f} calls/s",
        peer=f"p50 {millis(first)} at {smallest:,}",
        ratio=rate,
        bar="flat (≥ 0.8 ×)" if size != smallest else "–",
        holds=rate >= 0.8 if size != smallest else None,
        how=f"rate against the rate at {smallest:,} rows; one call at a time, the ledgers in turns",
    )
