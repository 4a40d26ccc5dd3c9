"""Who lives and who is dead, by locked files and by session locks alike."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolgate.ledger.owners import FileOwners, Owners
from toolgate.storage.postgres_connect import PostgresOwners

from .ledgers import soon

Make = Callable[[], Owners]


@pytest.fixture(params=["files", pytest.param("sessions", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "files" else str(request.getfixturevalue("fresh_dsn"))


@pytest.fixture
def make(place: str) -> Make:
    return lambda: PostgresOwners(place) if place.startswith("postgres") else FileOwners(Path(place))


async def test_an_owner_lives_until_it_leaves(make: Make) -> None:
    one, two = make(), make()
    await soon(one.enter())
    await soon(two.enter())
    try:
        assert one.me != two.me
        assert not await soon(one.dead(two.me))
        assert not await soon(two.dead(one.me))
        assert not await soon(one.dead(one.me))
        await soon(two.leave())
        assert await soon(one.dead(two.me))
        assert await soon(one.dead(two.me)), "asking does not bring it back to life"
        assert await soon(one.dead("o_never-1-1"))
    finally:
        await soon(two.leave())
        await soon(one.leave())


async def test_two_who_ask_at_once_get_the_same_answer(make: Make) -> None:
    one, two = make(), make()
    await soon(one.enter())
    await soon(two.enter())
    try:
        answers = await soon(asyncio.gather(*(owner.dead("o_gone-1-1") for owner in (one, two) * 10)))
        assert all(answers)
    finally:
        await soon(two.leave())
        await soon(one.leave())


async def test_a_killed_owner_is_dead_and_a_living_process_is_not(make: Make, place: str) -> None:
    owners = make()
    await soon(owners.enter())
    script = Path(__file__).with_name("owner_to_kill.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, place, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        other = (await soon(process.stdout.readline())).decode().strip()
        assert other
        assert not await soon(owners.dead(other))
        process.kill()
        await soon(process.wait())
        await soon(_until_dead(owners, other))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await soon(owners.leave())


async def _until_dead(owners: Owners, other: str) -> None:
    """The server learns of it a moment later than we do."""
    while not await owners.dead(other):
        await asyncio.sleep(0.02)
