"""Testing what you build on toolgate: a gate in memory, a clock that stands still, a human who follows a script.

A question that nobody scripted fails the test, and so does a scripted answer that nobody asked for.
"""

import asyncio

import toolgate
from toolgate import testing


@toolgate.tool("door.open", writes=["outside"])
async def open_door(room: str) -> str:
    """Open the door of a room."""
    return f"the door of {room} is open"


async def main() -> None:
    human = testing.Script(testing.Approve("door.open"), testing.Refuse("door.open", reason="at night"))
    clock = testing.FixedClock()
    async with testing.gate(tools=[open_door], human=human, clock=clock) as gate:
        assert (await gate.call("door.open", {"room": "lab"})).ok
        clock.advance(3600)
        refused = await gate.call("door.open", {"room": "lab"})
        assert refused.error
        print(refused.error.message)
        assert [question.args["room"] for question in human.seen] == ["lab", "lab"]
        assert (await gate.verify()).ok


asyncio.run(main())
