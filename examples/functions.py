"""Tools for a function-calling API, its calls made through the gate, and the messages to answer it with.

What the two models said is written down here; in a program it comes from their SDKs, as objects of the same shape.
"""

import asyncio
import json

import toolgate

CONFIG = {"version": 1, "default_persona": "helper", "personas": {"helper": {"phase": "experiment"}}}
OPENAI_SAID = [
    {"id": "call_1", "type": "function", "function": {"name": "clock_set", "arguments": '{"hour": 7}'}},
    {"id": "call_2", "type": "function", "function": {"name": "clock_set", "arguments": '{"hour": '}},
]
ANTHROPIC_SAID = [
    {"type": "text", "text": "I will set the clock, then open the door."},
    {"type": "tool_use", "id": "toolu_1", "name": "clock_set", "input": {"hour": 8}},
    {"type": "tool_use", "id": "toolu_2", "name": "door_open", "input": {"room": "lab"}},
    {"type": "tool_use", "id": "toolu_3", "name": "clock_set", "input": {"hour": 9}},
]


@toolgate.tool("clock.set", reads=["system"])
async def set_clock(hour: int) -> str:
    """Set the clock."""
    return f"it is {hour} o'clock"


@toolgate.tool("door.open", writes=["outside"])
async def open_door(room: str) -> str:
    """Open the door of a room."""
    return f"the door of {room} is open"


async def main() -> None:
    async with toolgate.open(".", CONFIG, tools=[set_clock, open_door]) as gate:
        tools = gate.tools(persona="helper")
        names = [each["function"]["name"] for each in tools.as_openai()]
        print([name for name in names if name.startswith(("clock", "door"))])

        for message in await tools.run_openai(OPENAI_SAID, conversation="c-1"):
            print(message["role"], message["tool_call_id"], message["content"][:70])

        answer = await tools.run_anthropic(ANTHROPIC_SAID, wait=False)
        for block in answer["content"]:
            failed = block.get("is_error", False)
            said = json.loads(block["content"])["error"]["code"] if failed else block["content"]
            print(block["type"], block["tool_use_id"], said)


asyncio.run(main())
