from __future__ import annotations

from toolgate.features.servers.transport import LONGEST, TRIPS_AT, Breaker


class Clock:
    now = 100.0


def test_it_waits_longer_each_time_and_only_an_answer_clears_it() -> None:
    breaker = Breaker(lambda: Clock.now, lambda: 1.0)
    waits = []
    for _ in range(TRIPS_AT):
        breaker.failed()
        waits.append(breaker.wait)
    assert waits == [0.0, 0.5, 1.0, 2.0, LONGEST]
    assert breaker.is_open
    breaker.worked()
    assert (breaker.is_open, breaker.wait) == (False, 0.0)


def test_many_gates_do_not_try_at_the_same_moment() -> None:
    def waits(chance: float) -> float:
        breaker = Breaker(lambda: Clock.now, lambda: chance)
        breaker.failed()
        breaker.failed()
        return breaker.wait

    assert (waits(0.0), waits(1.0)) == (0.25, 0.5)
