"""A process that owns calls until it is killed. Run by test_owners.py with the kind and the place of its database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from toolgate.ledger.owners import FileOwners, Owners
from toolgate.storage.postgres_connect import PostgresOwners


async def main(place: str) -> None:
    owners: Owners = PostgresOwners(place) if place.startswith("postgres") else FileOwners(Path(place))
    await owners.enter()
    print(owners.me, flush=True)
    await asyncio.sleep(60)


asyncio.run(main(sys.argv[1]))
