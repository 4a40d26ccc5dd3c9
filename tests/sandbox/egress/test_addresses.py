"""Names become addresses once, and only those on the internet, unless the owner listed them."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.errors import InvalidArgs, NotAllowed, RateLimited, TimedOut, Unavailable
from toolgate.core.target import target_of
from toolgate.sandbox.egress.addresses import AddressPins, Resolver, kind_of, own_addresses, private_places

PUBLIC = "93.184.216.34"


def pins(resolver: Resolver, *private: str, names: int = 8) -> AddressPins:
    return AddressPins(private, resolver, 0.2, names)


def fixed(*addresses: str) -> Resolver:
    async def resolver(_: str) -> Sequence[str]:
        return addresses

    return resolver


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "100.100.100.200", "127.0.0.1", "127.255.0.1",
        "169.254.169.254", "168.63.129.16", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
        "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:10.0.0.1",
        "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:db8::1",
        "2002:7f00:1::", "2002:a00:1::1", "2002:5db8:d822::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1",
        "fe80::1%eth0", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
async def test_an_address_that_is_not_on_the_internet_is_refused_alone_and_among_others(address: str) -> None:
    for answers in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(NotAllowed) as raised:
            await pins(fixed(*answers)).addresses(target_of("http://name.example.com/"))
        assert "sandbox.network.private" in raised.value.fix


@pytest.mark.parametrize(
    "address", [PUBLIC, "2606:2800:220:1::1", "64:ff9b::5db8:d822", "1.1.1.1", "2a00::1"]
)
async def test_an_address_on_the_internet_is_taken(address: str) -> None:
    found = await pins(fixed(address)).addresses(target_of("http://name.example.com/"))
    assert [str(each) for each in found] == [str(ipaddress.ip_address(address))]


@given(st.integers(0, 2**32 - 1))
def test_what_the_standard_library_calls_private_is_never_on_the_internet_for_us(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    embedded = [f"::ffff:{address}", f"64:ff9b::{address}", f"::{address}"]
    for text in (str(address), *embedded):
        parsed = ipaddress.ip_address(text)
        if not address.is_global or address.is_multicast:
            assert kind_of(parsed)
    assert kind_of(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))) == "6to4"


@given(st.integers(0, 2**128 - 1))
def test_the_same_holds_for_ipv6(number: int) -> None:
    address = ipaddress.IPv6Address(number)
    if not address.is_global or address.is_multicast:
        assert kind_of(address)


async def test_this_machines_own_addresses_are_refused_even_if_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "127.0.0.1" in own_addresses()
    monkeypatch.setattr("toolgate.sandbox.egress.addresses.own_addresses", lambda: frozenset({PUBLIC}))
    with pytest.raises(NotAllowed, match="this machine's"):
        await pins(fixed(PUBLIC)).addresses(target_of("http://name.example.com/"))


async def test_exactly_what_the_owner_lists_may_be_private() -> None:
    listed = pins(fixed("192.168.1.5"), "db.home.arpa:5432", "127.0.0.1:8000", "169.254.1.1:80")
    assert await listed.addresses(target_of("http://db.home.arpa:5432/"))
    assert await listed.addresses(target_of("http://127.0.0.1:8000/"))
    assert await listed.addresses(target_of("http://169.254.1.1/"))
    for url in (
        "http://db.home.arpa/",
        "http://127.0.0.1:8001/",
        "http://127.0.0.2:8000/",
        "http://b.home.arpa:5432/",
    ):
        with pytest.raises(NotAllowed):
            await listed.addresses(target_of(url))


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "2002:7f00:1::"])
async def test_a_listed_name_does_not_lead_to_addresses_that_nobody_owns(address: str) -> None:
    with pytest.raises(NotAllowed):
        await pins(fixed(address), "db.home.arpa:80").addresses(target_of("http://db.home.arpa/"))


@pytest.mark.parametrize("entry", ["127.0.0.1", "*.home.arpa:80", "127.1:80", "http://127.0.0.1:80"])
def test_an_entry_of_the_private_list_is_a_host_with_a_port(entry: str) -> None:
    with pytest.raises(InvalidArgs):
        private_places([entry])


async def test_a_name_is_asked_for_once_also_by_many_at_once_and_a_later_answer_changes_nothing() -> None:
    asked: list[str] = []

    async def changing(name: str) -> Sequence[str]:
        asked.append(name)
        await asyncio.sleep(0.01)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    pinned = pins(changing)
    target = target_of("http://name.example.com/")
    many = await asyncio.gather(*(pinned.addresses(target) for _ in range(20)))
    assert {str(address) for found in many for address in found} == {PUBLIC}
    await pinned.addresses(target_of("https://NAME.example.com.:8443/x"))
    assert asked == ["name.example.com"]


async def test_a_name_without_an_answer_may_be_asked_for_again_but_not_for_ever() -> None:
    asked: list[str] = []

    async def failing(name: str) -> Sequence[str]:
        asked.append(name)
        if len(asked) == 1:
            raise OSError("no server could be reached")
        return [PUBLIC]

    pinned = pins(failing, names=2)
    with pytest.raises(Unavailable):
        await pinned.addresses(target_of("http://name.example.com/"))
    assert await pinned.addresses(target_of("http://name.example.com/"))
    with pytest.raises(RateLimited):
        await pinned.addresses(target_of("http://other.example.com/"))


@pytest.mark.parametrize("answers", [[], ["nonsense"], [f"93.184.216.{n}" for n in range(20)]])
async def test_an_answer_that_makes_no_sense_is_no_answer(answers: list[str]) -> None:
    with pytest.raises(Unavailable):
        await pins(fixed(*answers)).addresses(target_of("http://name.example.com/"))


async def test_a_slow_resolver_is_not_waited_for() -> None:
    async def slow(_: str) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    pinned = pins(slow)
    with pytest.raises(TimedOut):
        await pinned.addresses(target_of("http://name.example.com/"))
    waiting = asyncio.create_task(pinned.addresses(target_of("http://name.example.com/")))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await pinned.close()
