"""Addresses of hosts: a name becomes addresses once for each program, and stays so; a connection goes to one of them.

Addresses that are not on the internet are refused. The name is used for the certificate only, and never looked up again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import psutil

from toolgate.core.errors import CallError, InvalidArgs, NotAllowed, RateLimited, TimedOut, Unavailable
from toolgate.core.hosts import authority_of, joined
from toolgate.core.target import Target
from toolgate.sandbox.egress.grant import EgressLimits

Address = IPv4Address | IPv6Address
Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""A name's addresses, as text."""

MAX_ADDRESSES = 16
_AT_ONCE = 2
_KINDS_4 = {
    "unspecified": "0.0.0.0/8",
    "loopback": "127.0.0.0/8",
    "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16",
    "carrier's": "100.64.0.0/10",
    "link-local": "169.254.0.0/16",
    "metadata": "168.63.129.16/32",
    "multicast": "224.0.0.0/4",
    "reserved": "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4",
}
_KINDS_6 = {
    "loopback": "::1/128",
    "unspecified": "::/128",
    "private": "fc00::/7",
    "link-local": "fe80::/10",
    "multicast": "ff00::/8",
    "Teredo": "2001::/32",
    "6to4": "2002::/16",
    "reserved": "2001:2::/48 2001:10::/28 2001:20::/28 2001:db8::/32 3fff::/20",
}
_V4 = [(IPv4Network(net), kind) for kind, nets in _KINDS_4.items() for net in nets.split(" ")]
_V6 = [(IPv6Network(net), kind) for kind, nets in _KINDS_6.items() for net in nets.split(" ")]
_GLOBAL_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")

OWNED = frozenset({"loopback", "private", "carrier's", "this machine's"})
"""Kinds that a listed name may lead to; for any other, the address itself must be listed."""


def kind_of(address: Address) -> str:
    """What an address is other than on the internet, or nothing. What is inside a mapped address counts."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return kind_of(address.ipv4_mapped)
        if address in _NAT64:
            return kind_of(IPv4Address(int(address) & 0xFFFF_FFFF))
        kind = next((kind for net, kind in _V6 if address in net), "")
        return kind or ("" if address in _GLOBAL_6 else "reserved")
    return next((kind for net, kind in _V4 if address in net), "")


def own_addresses() -> frozenset[str]:
    """This machine's own, also where they are public: what listens here was not meant for programs."""
    found = (each.address.partition("%")[0] for card in psutil.net_if_addrs().values() for each in card)
    return frozenset(found)


@cache
def _lookups() -> ThreadPoolExecutor:
    """Threads of their own: a name server that takes its time holds up nothing else."""
    return ThreadPoolExecutor(8, "egress-names")


async def system_resolver(name: str) -> Sequence[str]:
    ask = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_lookups(), ask)
    return [str(entry[4][0]) for entry in found]


def private_places(entries: Iterable[str]) -> frozenset[tuple[str, int]]:
    """The owner's list of `host:port` that may be private."""
    places = []
    for entry in entries:
        host, port = authority_of(entry)
        if port is None:
            raise InvalidArgs(f"{entry[:100]!r} has no port", "list private hosts as host:port")
        places.append((host, port))
    return frozenset(places)


def check_literal(host: str, ports: Iterable[int], private: Iterable[str]) -> None:
    """What would be refused when it is tried, known without asking anybody: an address, or this machine by its name."""
    address = ip_address("127.0.0.1") if host == "localhost" else _literal(host)
    kind = kind_of(address) if address is not None else ""
    listed = private_places(private)
    if kind and not any((host, port) in listed for port in ports):
        raise NotAllowed(
            f"{host} is a {kind} address, which programs may not reach",
            f"the project's owner can list {joined(host, min(ports))} under sandbox.network.private",
        )


class AddressPins:
    """For one program: each name is asked for once, and its addresses are kept until the program ends."""

    def __init__(self, private: Iterable[str], resolver: Resolver, seconds: float, names: int) -> None:
        self._private = private_places(private)
        self._resolver = resolver
        self._seconds = seconds
        self._names = names
        self._own = own_addresses()
        self._asked = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._known: dict[str, asyncio.Task[tuple[Address, ...]]] = {}

    async def addresses(self, target: Target) -> tuple[Address, ...]:
        """Where to connect, each of them allowed; one that is not refuses them all."""
        addresses = await self._pinned(target.host)
        listed = (target.host, target.port) in self._private
        for address in addresses:
            kind = kind_of(address) or ("this machine's" if str(address) in self._own else "")
            exact = listed and (kind in OWNED or str(address) == target.host)
            if kind and not exact:
                raise NotAllowed(
                    f"{target.host} is at {address}, a {kind} address, which programs may not reach",
                    f"the project's owner can list {joined(target.host, target.port)} under sandbox.network.private",
                )
        return addresses

    async def close(self) -> None:
        for task in self._known.values():
            task.cancel()
        await asyncio.gather(*self._known.values(), return_exceptions=True)

    async def _pinned(self, host: str) -> tuple[Address, ...]:
        if (literal := _literal(host)) is not None:
            return (literal,)
        task = self._known.get(host)
        if task is None:
            if self._asked >= self._names:
                raise RateLimited(
                    f"this program has asked for {self._names} names already", "use fewer hosts"
                )
            self._asked += 1
            task = self._known[host] = asyncio.create_task(self._ask(host))
        # Shielded: the answer is for everybody who waits for it, also when the first one leaves.
        try:
            return await asyncio.shield(task)
        except CallError:
            # Nothing was pinned, so asking again changes no answer; but a later answer must not be dropped here.
            if self._known.get(host) is task:
                del self._known[host]
            raise

    async def _ask(self, host: str) -> tuple[Address, ...]:
        try:
            async with self._turns, asyncio.timeout(self._seconds):
                answers = await self._resolver(host)
            addresses = tuple(dict.fromkeys(_usable(answer) for answer in answers))
        except TimeoutError as error:
            raise TimedOut(f"the name {host} was not resolved in {self._seconds:g} s", "try again") from error
        except (OSError, ValueError) as error:
            raise Unavailable(f"the name {host} cannot be resolved", "check the name") from error
        if not 0 < len(addresses) <= MAX_ADDRESSES:
            raise Unavailable(f"the name {host} has {len(addresses)} addresses", "use another host")
        return addresses


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _usable(answer: str) -> Address:
    """A scoped address is link-local; a mapped one is the address in it."""
    address = ip_address(answer.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_MOST_TRIED = 4


@cache
def _trust(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(
    target: Target, addresses: Sequence[Address], limits: EgressLimits, ca_file: str | None
) -> tuple[Streams, str]:
    """Streams to the first address that answers, and that address."""
    context = await asyncio.to_thread(_trust, ca_file) if target.scheme == "https" else None
    tried = addresses[:_MOST_TRIED]
    failure: CallError = Unavailable(f"{target.place} cannot be reached", "try again")
    for address in tried:
        try:
            async with asyncio.timeout(limits.connect_s / len(tried)):
                streams = await asyncio.open_connection(
                    str(address), target.port, ssl=context, limit=limits.head_bytes,
                    server_hostname=target.host if context else None,
                )  # fmt: skip
            return streams, str(address)
        except TimeoutError:
            failure = TimedOut(f"{target.place} did not answer in {limits.connect_s:g} s", "try again")
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message or "it does not verify"
            raise Unavailable(
                f"the certificate of {target.place}: {why}", "use the host's right name"
            ) from error
        except (OSError, ValueError) as error:
            failure = Unavailable(f"{target.place} cannot be reached: {type(error).__name__}", "try again")
    raise failure
