"""One of many processes that call as fast as they can. Run by test_limits.py; prints how many calls were let in."""

from __future__ import annotations

import asyncio
import json
import sys

import toolgate


@toolgate.tool("t.look", reads=["system"])
async def look(x: int = 0) -> int:
    """Read something."""
    return x


async def main(root: str, database: str, config: str, tries: int) -> None:
    async with toolgate.open(root, json.loads(config), database, tools=[look]) as gate:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)  # all start together
        results = []
        for n in range(tries // 5):  # a few at a time, so that batches of several processes interleave
            calls = (gate.call("t.look", {"x": n}) for _ in range(5))
            results += await asyncio.gather(*calls)
        codes = [result.error.code.value if result.error else "ok" for result in results]
        print(json.dumps({code: codes.count(code) for code in set(codes)}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
