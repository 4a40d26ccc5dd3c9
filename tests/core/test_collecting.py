"""Garbage collection that is put off comes back, whoever leaves last."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

from toolgate.core.collecting import NoCollection


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    frozen = gc.get_freeze_count()
    assert gc.isenabled()
    yield
    assert gc.isenabled()
    if gc.get_freeze_count() != frozen:
        gc.unfreeze()


def test_it_is_off_inside_and_on_again_after_an_error() -> None:
    def fail() -> None:
        with NoCollection():
            raise ValueError(gc.isenabled())

    with pytest.raises(ValueError, match="False"):
        fail()
    assert gc.isenabled()


def test_whoever_has_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with NoCollection(lasting=True):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_one_that_leaves_while_another_is_inside_leaves_it_off() -> None:
    first, second = NoCollection(), NoCollection()
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert not gc.isenabled()
    second.__exit__()


def test_threads_that_come_and_go_leave_it_on() -> None:
    start, before = Barrier(4), sys.getswitchinterval()

    def come_and_go() -> None:
        start.wait(10)
        for _ in range(300):
            with NoCollection():
                pass

    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=come_and_go) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
    finally:
        sys.setswitchinterval(before)


def test_objects_of_a_program_that_runs_for_long_are_not_kept() -> None:
    many = [[number] for number in range(60_000)]
    before = gc.get_freeze_count()
    with NoCollection(lasting=True):
        pass
    assert gc.get_freeze_count() == before
    assert many
