"""A process that writes, removes and re-embeds until it is killed. It says what is done after each step."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from toolgate.recall import vector_index
from toolgate.recall.engine import open_recall
from toolgate.storage.tables import SqliteTables

from .embedders import WordEmbedder, crowd


async def main(place: Path, start: int) -> None:
    vector_index.EXACT_MOST = 100
    vector_index.SAVED_AFTER = 50
    recall = await open_recall(SqliteTables(place / "features.db"), place / "recall", WordEmbedder())
    items = crowd(3_000)
    for at in range(start, 3_000, 10):
        await recall.put(items[at : at + 10])
        print(f"put {at + 10}", flush=True)
        await recall.search("harbour", scope="me")
        if at % 50 == 0:
            await recall.remove("me", [items[at].id])
            print(f"removed {at}", flush=True)
        if at % 30 == 0:
            other = await open_recall(
                SqliteTables(place / "features.db"), place / "recall", WordEmbedder(f"test/{at % 60}@1", 16)
            )
            await other.reembed()
            print(f"embedded {at}", flush=True)
            await recall.reembed()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
