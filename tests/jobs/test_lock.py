"""Who runs the jobs of a project: one, as long as it lives and the database knows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from servers.postgres import Server
from toolgate.features.jobs.place import JobsPlace, lock_of


def place_of(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> JobsPlace:
    if name == "sqlite":
        return JobsPlace(tmp_path)
    server: Server = request.getfixturevalue("postgres_server")
    return JobsPlace(dsn=server.fresh_dsn())


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_one_holds_it_the_others_see_that_and_get_it_when_it_is_given_back(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = place_of(name, tmp_path, request)
    first, second = lock_of(place), lock_of(place)
    assert not await second.held()
    assert await first.take()
    assert await first.held()
    assert await second.held()
    assert not await second.take()
    await first.release()
    assert not await second.held()
    assert await second.take()
    await second.release()


async def test_a_session_that_the_server_ended_is_noticed_and_another_may_take_over(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.features.jobs.place.LOOK_S", 0.05)
    place = JobsPlace(dsn=postgres_server.fresh_dsn())
    first, second = lock_of(place), lock_of(place)
    assert await first.take()
    lost = asyncio.create_task(first.lost())
    await asyncio.sleep(0.1)
    assert not lost.done()
    postgres_server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()",
        place.dsn,
    )
    await asyncio.wait_for(lost, 60)
    assert await second.take()
    await second.release()
    await first.release()
