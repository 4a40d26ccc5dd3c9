"""One allowed call, one that asks, and the proof of both."""

import asyncio

import toolgate

CONFIG = {"version": 1, "default_persona": "helper", "personas": {"helper": {"phase": "experiment"}}}


@toolgate.tool("door.open", writes=["outside"])
async def open_door(room: str) -> str:
    """Open the door of a room."""
    return f"the door of {room} is open"


async def main() -> None:
    async with toolgate.open(".", CONFIG, tools=[open_door]) as gate:
        print((await gate.call("system.ping")).data["message"])
        asked = await gate.call("door.open", {"room": "lab"}, wait=False)
        print(asked.error and asked.error.code)
        await gate.answer(asked.data["question"], "approve")
        print((await gate.call("door.open", {"room": "lab"})).data)
        print("verified:", (await gate.verify()).ok)


asyncio.run(main())
