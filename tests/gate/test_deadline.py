from __future__ import annotations

import asyncio
import time

import pytest

from toolgate.gate.deadline import Deadline, Late, within


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


async def test_what_never_waits_gives_its_value_or_its_error_without_a_watch() -> None:
    async def at_once(value: int) -> int:
        return 10 // value

    assert await within(0.0, at_once(5)) == 2
    with pytest.raises(ZeroDivisionError):
        await within(0.0, at_once(0))


async def test_what_waits_too_long_is_late_and_was_told_to_stop() -> None:
    told: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("stop")
            raise

    with pytest.raises(Late):
        await within(0.01, forever())
    assert told == ["stop"]
    await asyncio.sleep(0)  # nothing is left of the cancellation


async def test_what_waits_several_times_gets_every_answer_and_every_error() -> None:
    async def broken() -> None:
        raise KeyError("inside")

    async def steps() -> list[object]:
        seen: list[object] = [await asyncio.sleep(0, "first")]
        try:
            await asyncio.create_task(broken())
        except KeyError:
            seen.append("error")
        return [*seen, await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.001, 2))]

    assert await within(30, steps()) == ["first", "error", [1, 2]]


async def test_the_time_before_the_first_wait_counts() -> None:
    async def busy_then_waiting() -> None:
        time.sleep(0.05)
        await asyncio.sleep(0.5)

    begun = time.monotonic()
    with pytest.raises(Late):
        await within(0.02, busy_then_waiting())
    assert time.monotonic() - begun < 0.4


async def test_a_cancellation_from_outside_stays_one_for_what_is_watched() -> None:
    async def wait() -> None:
        await within(5, asyncio.Event().wait())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_ignores_being_late_still_gives_a_value() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"
        return ""

    assert await within(0.01, stubborn()) == "all the same"
    await asyncio.sleep(0)
