"""A process that runs jobs until it is killed: `ROOT DATABASE run|stand-by`, with `-` for the project's own SQLite."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from world import World, opened  # type: ignore[import-not-found]


async def main(root: Path, database: str | None, how: str) -> None:
    async with opened(World(root), database) as gate:
        if how == "stand-by":
            print("standing by", flush=True)
            await gate.jobs.stand_by()
        async with gate.jobs.running() as lost:
            print("running", flush=True)
            await lost


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), None if sys.argv[2] == "-" else sys.argv[2], sys.argv[3]))
