"""Whose connection goes when there are too many, without any connection."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from toolgate.core.errors import RateLimited, Unavailable
from toolgate.faces.http.places import BATCH, FILES, ConnectionPlaces, fitting
from toolgate.project.sections import HttpSpec


@dataclass(eq=False)
class Wire:
    address: str = "127.0.0.1"
    owner: str = ""
    busy: bool = True
    dropped: list[bool] = field(default_factory=list)

    def drop(self) -> None:
        self.dropped.append(True)


def places(**limits: int) -> ConnectionPlaces:
    few = {"connections": 6, "reserved": 4, "address_connections": 8, "persona_connections": 4}
    return ConnectionPlaces(HttpSpec.model_construct(**HttpSpec().model_dump() | few | limits))


def arrive(here: ConnectionPlaces, count: int, address: str = "127.0.0.1") -> list[Wire]:
    wires = [Wire(address) for _ in range(count)]
    for wire in wires:
        here.arrived(wire)
    return wires


def test_a_flood_from_one_address_drops_its_own_oldest_and_nobody_elses() -> None:
    here = places()
    others = arrive(here, 2, "192.0.2.1")
    flood = arrive(here, 50)
    assert not any(wire.dropped for wire in others)
    assert [bool(wire.dropped) for wire in flood] == [True] * 42 + [False] * 8


def test_a_flood_from_many_addresses_keeps_within_all_places_and_lets_the_newest_in() -> None:
    here = places()
    for number in range(50):
        (newest,) = arrive(here, 1, f"192.0.2.{number}")
        assert here.nobodys <= 10
    assert not newest.dropped


def test_nobodys_connections_take_no_place_of_one_that_shows_its_token() -> None:
    here = places()
    mine = arrive(here, 4)
    for wire in mine:
        here.known(wire, "bob")
    arrive(here, 100)
    (human,) = arrive(here, 1)
    here.known(human, "human")
    arrive(here, 100, "192.0.2.1")
    assert not any(wire.dropped for wire in (*mine, human))


def test_a_connection_that_rests_gives_way_to_a_new_one_of_the_same_persona_only() -> None:
    here = places()
    others = arrive(here, 1)
    here.known(others[0], "eve")
    others[0].busy = False
    mine = arrive(here, 5)
    mine[2].busy = False
    for wire in mine:
        here.known(wire, "bob")
    assert [bool(wire.dropped) for wire in mine] == [False, False, True, False, False]
    (one_more,) = arrive(here, 1)
    with pytest.raises(RateLimited, match="bob has 4 requests under way"):
        here.known(one_more, "bob")
    assert not others[0].dropped


def test_all_personas_together_leave_the_humans_places_alone() -> None:
    here = places()
    for name in ("ada", "bob"):
        for wire in arrive(here, 3):
            here.known(wire, name)
    (late,) = arrive(here, 1)
    with pytest.raises(Unavailable, match="all 6 places for personas are taken"):
        here.known(late, "eve")
    for wire in arrive(here, 4):
        here.known(wire, "human")
        assert not wire.dropped


@pytest.mark.parametrize("descriptors", [256, 512, 1024, 1500, 4096])
def test_connections_leave_descriptors_for_the_ledger_and_files(descriptors: int) -> None:
    found = fitting(HttpSpec(), descriptors)
    taken = found.connections + 2 * found.reserved + BATCH
    assert taken <= descriptors - min(FILES, descriptors // 2)
    assert min(found.connections, found.reserved) >= 4
