"""`room.read` and `room.post`: how members of a room hear and speak. A post's claims are checked against the ledger."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from toolgate.agents import room as rules
from toolgate.core.context import Context
from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.names import HUMAN
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.agents.runs import Runs


class PostClaim(TypedDict, total=False):
    text: Annotated[str, Field(max_length=1000)]
    file: Annotated[str, Field(min_length=1, max_length=1000)]
    line: Annotated[int, Field(ge=1)]
    quote: Annotated[str, Field(max_length=500)]


Words = Annotated[str, Field(min_length=1, max_length=8000, description="What you say.")]
Claims = Annotated[list[PostClaim], Field(max_length=20, description="Each with `text`, and the `file` and `line` that show it; a `quote` of the line is checked too.")]  # fmt: skip
Guess = Annotated[str, Field(max_length=1000, description="A new explanation for the board.")]
Names = Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=20, description="Ids of hypotheses on the board.")]  # fmt: skip
Next = Annotated[str, Field(max_length=64, description="Who should speak next; a hint.")]
RoomId = Annotated[str, Field(max_length=256, description="The room; empty: the one that you are in.")]


def tools(context: FeatureContext) -> list[Tool]:
    runs: Runs = context.gate.feature("agents")

    @tool("room.read", reads=["memory"])
    async def read(ctx: Context, room: RoomId = "") -> dict[str, Any]:
        """The room that you are in: its topic, the board of hypotheses, and what was said."""
        found = await runs.rooms.get(_place(ctx, room))
        if ctx.persona != HUMAN and ctx.persona not in found.members:
            raise NotAllowed(
                f"{ctx.persona} is not in {found.id}", "ask a human", data={"rule": "room:member"}
            )
        posts = await runs.rooms.posts(found.id)
        return found.shown() | {"board": [one.as_dict() for one in rules.board(posts)], "posts": posts}

    @tool("room.post", writes=["memory"], summarize=lambda post: str(post.get("text", ""))[:200])
    async def post(
        ctx: Context, text: Words, claims: Claims = [], hypothesis: Guess = "", supports: Names = [],  # noqa: B006
        contradicts: Names = [], next: Next = "", room: RoomId = "",  # noqa: A002, B006
    ) -> dict[str, Any]:  # fmt: skip
        """Say something in the room that you are in. Claims count only where the ledger shows that the line was read."""
        for claim in claims:
            if "file" not in claim or "line" not in claim:
                raise InvalidArgs(
                    "a claim names no file and line", 'write {"text": …, "file": "src/a.py", "line": 12}'
                )
        body = {
            "text": text, "claims": [{**claim} for claim in claims], "hypothesis": hypothesis, "supports": supports,
            "contradicts": contradicts, "next": next,
        }  # fmt: skip
        return await runs.rooms.post(_place(ctx, room), ctx.persona, ctx.call_id, body)

    return [post, read]


def _place(ctx: Context, room: str) -> str:
    """A persona speaks in the room that its call belongs to; the human names one."""
    if ctx.persona != HUMAN and room and ctx.conversation and room != ctx.conversation:
        raise NotAllowed(
            f"this call belongs to {ctx.conversation}", "speak there", data={"rule": "room:member"}
        )
    found = room or ctx.conversation
    if not found:
        raise InvalidArgs("no room is named", "name it with `room`")
    return found
