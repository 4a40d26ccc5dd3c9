from __future__ import annotations

import asyncio

import pytest

from toolgate.gate.deadline import Deadline, Late


async def test_the_earliest_of_many_deadlines_strikes_first() -> None:
    order: list[int] = []

    async def wait(number: int, seconds: float) -> None:
        with pytest.raises(Late), Deadline(seconds):
            await asyncio.Event().wait()
        order.append(number)

    async with asyncio.timeout(30):
        await asyncio.gather(wait(3, 0.09), wait(1, 0.01), wait(2, 0.05))
    assert order == [1, 2, 3]


async def test_a_deadline_that_was_met_never_strikes() -> None:
    with Deadline(0.01):
        pass
    with (
        pytest.raises(Late),
        Deadline(0.03),
    ):  # the timer rings for the first one meanwhile, and finds it gone
        await asyncio.Event().wait()
    await asyncio.sleep(0)


async def test_a_cancellation_from_outside_stays_one() -> None:
    async def wait() -> None:
        with Deadline(5):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_inner_deadline_does_not_end_the_outer_one() -> None:
    with Deadline(5):
        with pytest.raises(Late), Deadline(0.01):
            await asyncio.Event().wait()
        await asyncio.sleep(0)


def test_each_event_loop_has_its_own_watch() -> None:
    async def late() -> bool:
        try:
            with Deadline(0.01):
                await asyncio.Event().wait()
        except Late:
            return True
        return False

    assert asyncio.run(late())
    assert asyncio.run(late())
