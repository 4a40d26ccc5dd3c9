"""`diary.write` and `diary.read`. Policy decides about them as about any other tool."""

from typing import Annotated, Any

from pydantic import Field

from toolgate import Context, Tool, tool
from toolgate.feature import FeatureContext

from .book import Book

Text = Annotated[str, Field(min_length=1, max_length=10_000, description="What to remember.")]
Limit = Annotated[int, Field(ge=1, le=100, description="Entries to give at most.")]


def tools(context: FeatureContext) -> list[Tool]:
    book: Book = context.gate.feature("diary")

    @tool("diary.write", writes=["memory"])
    async def write(ctx: Context, text: Text) -> dict[str, int]:
        """Write an entry into your diary."""
        return {"id": await book.write(ctx.persona, text)}

    @tool("diary.read", reads=["memory"])
    async def read(ctx: Context, limit: Limit = 20) -> list[dict[str, Any]]:
        """Your own entries, newest first."""
        return await book.read(ctx.persona, limit)

    return [read, write]
