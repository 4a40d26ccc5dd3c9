"""An effectful call that is on disk twice before its caller hears of it, against one bare durable commit."""

from __future__ import annotations

from bench import world
from bench.measure import Line, alternate, median, millis
from bench.raw import raw_log
from bench.run import Run

BAR = 3.0
GROWN = 700
"""So many commits of each before: until its log has its full size and is written anew, a commit takes longer."""


async def durable(run: Run) -> list[Line]:
    run.tell("durable effectful call against one bare durable commit")
    folder = run.folder("durable")
    count = run.count(1500, 300)
    async with world.gate(folder) as gate:
        with raw_log(folder / "raw.db") as log:
            await world.checked(gate, world.EFFECT, world.ARGS)

            async def through() -> object:
                return await gate.call(world.EFFECT.name, world.ARGS)

            await alternate(through, log.commit_one, run.count(GROWN, 60))
            ours, peer = await alternate(through, log.commit_one, count)
    ratio = median(ours) / median(peer)
    return [
        Line(
            what="effectful call, durable (begin + settle), SQLite FULL",
            ours=f"p50 {millis(median(ours))}",
            peer=f"p50 {millis(median(peer))}",
            ratio=ratio,
            bar="≤ 3 ×",
            holds=ratio <= BAR,
            how=f"one call at a time against one bare commit of a row of the journal's shape and size (sqlite3, WAL, FULL, the same columns and indexes), in turns, {count:,} of each, after {GROWN} of each",
        )
    ]
