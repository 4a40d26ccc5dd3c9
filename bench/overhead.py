"""Gate overhead in process, with the ledger in memory: a call through the gate less the bare call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bench import world
from bench.measure import Line, alternate, median, micros, quantile
from bench.run import Run
from toolgate.core.tool import Tool

BAR = 100e-6
ROUNDS = 10


async def overhead(run: Run) -> list[Line]:
    plain = {"config": world.CONFIG, "args": world.ARGS}
    lines = [
        await _overhead(run, "read", world.READ, world.look, **plain),
        await _overhead(run, "effect", world.EFFECT, world.send, **plain),
    ]
    if world.REALISTIC.exists():
        ruled: dict[str, Any] = {"config": world.realistic(), "args": world.FILE_ARGS}
        lines += [
            await _overhead(run, "read of a path, 30 rules", world.RULED_READ, world.read_file, **ruled),
            await _overhead(run, "effect on a path, 30 rules", world.RULED_WRITE, world.write_file, **ruled),
        ]
    return lines


async def _overhead(
    run: Run, name: str, tool: Tool, bare: Callable[..., Awaitable[object]], config: dict[str, Any], args: dict[str, Any]
) -> Line:  # fmt: skip
    run.tell(f"gate overhead, {name}")
    folder = run.folder(tool.name)
    count = run.count(6000, 1500)
    async with world.gate(folder, "memory", config) as gate:
        await world.checked(gate, tool, args)

        async def through() -> object:
            return await gate.call(tool.name, args)

        async def direct() -> object:
            return await bare(**args)

        await alternate(through, direct, count // ROUNDS)
        rounds = [await alternate(through, direct, count // ROUNDS) for _ in range(ROUNDS)]
    extras = [median(ours) - median(peer) for ours, peer in rounds]
    ours, peer = ([time for turn in rounds for time in turn[side]] for side in (0, 1))
    tail = quantile(ours, 0.99) - quantile(peer, 0.99)
    return Line(
        what=f"gate overhead, ledger in memory: {name}",
        ours=f"p50 {micros(min(extras))} (median round {micros(median(extras))}), p99 {micros(tail)}",
        peer=f"p50 {median(peer) * 1e6:.1f} µs",
        bar="p50 ≤ 100 µs",
        holds=min(extras) <= BAR,
        how=f"`gate.call` less the bare `await` of the same function, in turns, {count:,} of each; "
        f"the quietest of {ROUNDS} rounds counts, for no peer shares the noise",
    )
