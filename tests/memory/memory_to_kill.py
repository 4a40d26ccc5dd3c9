"""A process that remembers, changes, forgets, purges and sums up, until somebody kills it. It says what it was told."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.names import HUMAN
from toolgate.facade import Gate

from .world import POLICY


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def told(
    gate: Gate, op: str, number: int, tool: str, args: dict[str, Any], persona: str = "ada"
) -> dict[str, Any]:
    say(begins=op, number=number)
    result = await gate.call(tool, args, persona=persona, conversation="stream")
    assert result.ok, result.error
    data: dict[str, Any] = result.data
    say(did=op, number=number, id=data["memories"][0]["id"] if data.get("memories") else "")
    return data


async def stream(gate: Gate, name: str) -> None:
    number = 0
    while True:
        number += 1
        text = f"{name} counts {name}item{number} first"
        ident = (await told(gate, "store", number, "memory.store", {"content": text}))["memories"][0]["id"]
        if number % 2 == 0:
            changed = f"{name} counts {name}item{number} second"
            await told(gate, "update", number, "memory.update", {"memory_id": ident, "content": changed})
        if number % 3 == 0:
            await told(gate, "forget", number, "memory.forget", {"memory_id": ident})
        if number % 6 == 0:
            await told(gate, "purge", number, "memory.purge", {"memory_ids": [ident]}, HUMAN)


async def main(root: str, database: str, what: str) -> None:
    async with toolgate.open(Path(root), POLICY, database or None) as gate:
        say(ready=True)
        if what == "rollup":
            await told(gate, "rollup", 0, "memory.rollup", {})
        else:
            await stream(gate, what)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
