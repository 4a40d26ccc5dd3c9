"""The book: its table, and what may be done with it."""

from typing import Any

from toolgate.core.errors import InvalidArgs
from toolgate.feature import FeatureContext
from toolgate.storage.tables import Migration

MIGRATIONS = (
    Migration(
        sqlite="CREATE TABLE diary_entries (id INTEGER PRIMARY KEY, persona TEXT NOT NULL, text TEXT NOT NULL);",
        postgres="CREATE TABLE diary_entries (id SERIAL PRIMARY KEY, persona TEXT NOT NULL, text TEXT NOT NULL);",
    ),
)


class Book:
    def __init__(self, context: FeatureContext) -> None:
        self._context = context

    async def write(self, persona: str, text: str) -> int:
        longest = self._context.config.characters
        if len(text) > longest:
            raise InvalidArgs(f"the entry has {len(text)} characters", f"use at most {longest}")
        tables = await self._context.tables()
        rows = await tables.fetch(
            "INSERT INTO diary_entries (persona, text) VALUES (?, ?) RETURNING id", persona, text
        )
        return int(rows[0]["id"])

    async def read(self, persona: str = "", limit: int = 20) -> list[dict[str, Any]]:
        """The newest first; of all personas, if none is named."""
        tables = await self._context.tables()
        return await tables.fetch(
            "SELECT id, persona, text FROM diary_entries WHERE persona = ? OR ? = '' ORDER BY id DESC LIMIT ?",
            persona, persona, limit,
        )  # fmt: skip


def open_book(context: FeatureContext) -> Book:
    return Book(context)
