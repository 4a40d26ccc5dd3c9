"""Calls that wait for a human, answered by another task: approved once, refused, and granted for a while.

A channel is any object with a `name` and `ask(question)`. This one puts questions into an inbox; in a real program
it would open a window or send a message. The first answer counts, from whichever channel or process it comes.
"""

from __future__ import annotations

import asyncio

import toolgate
from toolgate.core.ports import Question

CONFIG = {"version": 1, "default_persona": "helper", "personas": {"helper": {"phase": "experiment"}}}


def plan_of(room: str) -> str:
    return f"the lock of {room} will be released for ten seconds"


@toolgate.tool("door.open", writes=["outside"], preview=plan_of)
async def open_door(room: str) -> str:
    """Open the door of a room."""
    return f"the door of {room} is open"


class Inbox:
    name = "inbox"

    def __init__(self) -> None:
        self.questions: asyncio.Queue[Question] = asyncio.Queue()

    async def ask(self, question: Question) -> None:
        await self.questions.put(question)


async def human(gate: toolgate.Gate, inbox: Inbox) -> None:
    question = await inbox.questions.get()
    print(f"{question.persona} asks for {question.tool}: {question.preview}")
    await gate.answer(question.id, "approve", channel=inbox.name)

    question = await inbox.questions.get()
    await gate.answer(question.id, "deny", reason="not at night", channel=inbox.name)

    question = await inbox.questions.get()
    scope = toolgate.Scope(args={"room": {"equals": "lab"}}, seconds=600, uses=2)
    await gate.answer(question.id, "approve", scope=scope, channel=inbox.name)


async def main() -> None:
    inbox = Inbox()
    async with toolgate.open(".", CONFIG, tools=[open_door], channels=[inbox]) as gate:
        answering = asyncio.create_task(human(gate, inbox))
        for room in ("lab", "vault", "lab"):
            result = await gate.call("door.open", {"room": room})
            print(room, "→", result.data if result.ok else result.error and result.error.message)
        await answering
        # The third answer was also a grant: calls like it run without a question until it is used up.
        print("granted →", (await gate.call("door.open", {"room": "lab"})).data)
        for grant in await gate.grants():
            print(f"used {grant.uses} of {grant.body['max_uses']}")
            await gate.revoke(grant.id, reason="the evening is over")
        print("grants left:", len(await gate.grants()))


asyncio.run(main())
