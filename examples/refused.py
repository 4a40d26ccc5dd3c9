"""What a refusal looks like: the same shape as any other result."""

import asyncio
import json

import toolgate

CONFIG = {"version": 1, "personas": {"guest": {"phase": "observe"}}}


@toolgate.tool("door.open", writes=["outside"])
async def open_door(room: str) -> str:
    """Open the door of a room."""
    raise AssertionError("a refused call never gets here")


async def main() -> None:
    async with toolgate.open(".", CONFIG, tools=[open_door]) as gate:
        result = await gate.call("door.open", {"room": "lab"}, persona="guest")
        print(json.dumps(result.as_dict(), indent=2))


asyncio.run(main())
