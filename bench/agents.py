"""A round of an agent's loop without its model: what is recorded, one call through the gate, the guard against circles."""

from __future__ import annotations

import time
from typing import Any

from bench import world
from bench.measure import Line, quantile
from bench.run import Run
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.facade import Gate
from toolgate.storage.memory import MemoryBackend

BAR_MS = 3.0
ROUNDS = 50


async def agents(run: Run) -> list[Line]:
    lines: list[Line] = []
    for place, database in (("in memory", MemoryBackend()), ("in SQLite, on disk", None)):
        run.tell(f"rounds of an agent, recorded {place}")
        folder = run.folder(f"agents-{len(lines)}")
        where = database if database is not None else str(folder / ".toolgate" / "ledger.db")
        async with world.gate(folder, where, _config()) as gate:
            times = [await _round_ms(gate) for _ in range(run.count(9, 3))]
        middle = quantile(times, 0.5)
        lines.append(
            Line(
                what=f"a round of an agent's loop without the model, recorded {place}",
                ours=f"{middle:.2f} ms",
                how=f"median of {len(times)} runs of {ROUNDS} rounds with one read each",
                bar=f"≤ {BAR_MS:g} ms",
                holds=middle <= BAR_MS,
            )
        )
    return lines


def _config() -> dict[str, Any]:
    return {**world.CONFIG, "agents": {"model": "model", "rounds": ROUNDS + 1}}


async def _round_ms(gate: Gate) -> float:
    found = gate.feature("agents")
    tool = world.READ.name
    script = [
        {"calls": [{"tool": tool, "args": {**world.ARGS, **_other(number)}}]} for number in range(ROUNDS)
    ]
    found.models.given["model"] = ScriptedModel([*script, "done"], "model")
    made = await found.start("measure")
    begun = time.perf_counter()
    done = await found.drive(made)
    took = time.perf_counter() - begun
    if done.state != "done":
        raise RuntimeError(f"the run ended {done.state}: {done.reason}")
    replies = [step["body"] for step in await found.store.steps(made.id) if step["kind"] == "reply"]
    asked = sum(float(reply["seconds"]) for reply in replies)
    return (took - asked) / ROUNDS * 1000


def _other(number: int) -> dict[str, Any]:
    """Another argument each time: the same would be a circle."""
    name = next(iter(world.ARGS))
    return {name: f"{world.ARGS[name]}{number}"}
