"""Hosts, ports and schemes in conditions, each judged by itself.

A deny or ask of a host holds for every port, scheme, spelling and wildcard that could reach it (`catches`). An allow
compares the text as ever, and where a text leads somewhere, its host must fit too (`covers`): it never becomes wider.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv6Network, ip_network

from toolgate.core.errors import CallError, ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.core.target import Reach, target_of
from toolgate.policy.globs import CharSet, Token, alternatives, check_text, expand, fold, run_regex, tokens
from toolgate.policy.readings import (
    MAX_HOST_LENGTH,
    HostReading,
    Network,
    address_range,
    embedded,
    in_ascii,
    readings,
)

_WORDS = frozenset(
    {
        "network", "host", "hosts", "hostname", "hostnames", "url", "urls", "uri", "uris", "domain", "domains",
        "endpoint", "endpoints", "origin", "origins", "proxy", "href", "webhook", "dsn", "server", "servers", "addr",
    }
)  # fmt: skip
"""Words in the name of an argument that takes a place on the network."""
_NAME_PARTS = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HOSTLIKE = late_pattern(r"[^/]*\.[^/.]*[a-z][^/.]*\.?(:[^/]*)?", re.IGNORECASE)
_ADDRESS = late_pattern(
    r"[0-9*?]+(\.[0-9*?]+){3}(:[0-9*?]+)?|[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*", re.IGNORECASE
)
_LEADS = late_pattern(r"//|\\\\|:[0-9]+[/\\]?$|^\*\.")
_ODD = late_pattern(r"[/\\@?#]")
_SCHEME = late_pattern(r"([^/:\[\]]*)://|//")
_IPV6 = re.compile(r"\[([0-9a-f:.]*:[0-9a-f:.]*)(?:%[^\]]*)?\]", re.IGNORECASE)
_PORT = late_pattern(r"(.*):([0-9*?\[\]!-]*)", re.DOTALL)
_PROBE = "\ue000" * 600
"""Longer than any glob: only a star can stand for it."""


def takes_place(name: str) -> bool:
    """Whether an argument of this name takes hosts or URLs."""
    return any(part.lower() in _WORDS for part in _NAME_PARTS.findall(name))


def names_place(text: str) -> bool:
    """Whether a pattern is about a host, whatever the argument is called: a dotted name, an address, a URL."""
    if "://" in text or _network(text):
        return True
    bare = text.partition("/")[0].rpartition("@")[2]
    if _IPV6.match(bare) or _ADDRESS.fullmatch(bare):
        return True
    return "/" not in text and _HOSTLIKE.fullmatch(bare) is not None


class EndpointPlace:
    """One pattern (or text, if `literal`) that names a place, in its parts."""

    def __init__(self, one: str, literal: bool = False) -> None:
        self._nets: list[Network] = []
        self._host: re.Pattern[str] | None = None
        self._tokens: list[Token] = []
        self._range: Network | None = None
        whole = _network(one)
        scheme = _SCHEME.match(one)
        rest = one[scheme.end() :] if scheme else one
        authority, slash, path = (one, "", "") if whole else rest.partition("/")
        self._scheme = _compiled(scheme[1], literal) if scheme and scheme[1] else None
        self._path = _compiled(f"/{path}", literal) if slash and path not in ("", "*", "**") else None
        host, port = _split(authority.rpartition("@")[2])
        self._port = _compiled(port.lstrip("0") or port, literal) if port else None
        if whole:
            self._nets = _with_embedded(whole)
        else:
            self._read_host(host, literal)

    def _read_host(self, host: str, literal: bool) -> None:
        if literal and not host.startswith("*."):
            for reading in readings(host if ":" not in host else f"[{host}]"):
                self._nets += [ip_network(address) for address in reading.addresses]
        elif not literal and not any(char in "*?[" for char in host):
            self._read_host(host, literal=True)
            return
        self._range = address_range(host)
        plain = in_ascii(fold(host)).strip(". ") if not host.startswith(".") else in_ascii(fold(host))
        if plain in ("", "*", "**"):
            self._tokens = ["*"]
            return
        self._tokens = _literal(plain) if literal else tokens(plain, host)
        if literal and plain.startswith("*."):
            self._tokens = ["*", *self._tokens[1:]]
        self._host = alternatives([run_regex(self._tokens, ".", loose=True)])

    def catches(self, reading: HostReading) -> bool:
        """Whether what is read here could be this place."""
        if self._scheme is not None and reading.scheme and not self._scheme.fullmatch(reading.scheme):
            return False
        if self._port is not None and reading.ports and not any(map(self._port.fullmatch, reading.ports)):
            return False
        if self._path is not None and not any(map(self._path.fullmatch, reading.paths())):
            return False
        if any(address in net for net in self._nets for address in reading.addresses):
            return True
        if reading.nets and self._meets(reading):
            return True
        if self._host is None:
            return not self._nets
        return any(map(self._host.fullmatch, reading.names)) or any(map(self._overlaps, reading.tails))

    def _meets(self, reading: HostReading) -> bool:
        """Whether a range that is asked for has an address in common with this place."""
        nets = [*self._nets, *([self._range] if self._range is not None else [])]
        return any(
            net.version == each.version and net.overlaps(each) for net in nets for each in reading.nets
        )

    def covers(self, reading: HostReading) -> bool:
        """Whether the host that is read here is surely this place's; the text was compared before."""
        if self._scheme is not None and not self._scheme.fullmatch(reading.scheme):
            return False
        if self._host is None:
            return not self._nets or any(
                address in net for net in self._nets for address in reading.addresses
            )
        if reading.nets or not all(map(self._host.fullmatch, reading.names)):
            return False
        return all(self._host.fullmatch(_PROBE + tail) for tail in reading.tails)

    def _overlaps(self, tail: str) -> bool:
        """Whether some host that ends so fits. Positions in the pattern are followed over the tail, from all of them:
        what stands before it may be anything."""
        pattern = self._tokens
        if len(tail) > MAX_HOST_LENGTH:
            return True
        at = set(range(len(pattern) + 1))
        for char in tail:
            after = {each for each in at if each < len(pattern) and pattern[each] == "*"}
            for each in at:
                while each < len(pattern) and pattern[each] == "*":
                    each += 1
                if each < len(pattern) and _fits(pattern[each], char):
                    after.add(each + 1)
            at = after
        return any(all(piece == "*" for piece in pattern[each:]) for each in at)


@lru_cache(maxsize=1024)
def places(text: str, literal: bool = False) -> tuple[EndpointPlace, ...]:
    """A pattern of a condition, one place for each choice in its braces."""
    if literal or _IPV6.search(text):
        return (EndpointPlace(text, literal=True),)
    return tuple(EndpointPlace(one) for one in expand(text))


def caught(found: Sequence[EndpointPlace], text: str, listed: bool = True) -> bool:
    return any(place.catches(reading) for reading in readings(text, listed) for place in found)


def leads(text: str) -> bool:
    """Whether a text is about a place by its own words: it has a scheme, a port or a wildcard."""
    return _LEADS.search(text) is not None


def within(found: Sequence[EndpointPlace], pattern: str, name: str, text: str) -> bool:
    """Whether an allow whose text fits also fits by its host. Only where the text leads somewhere."""
    about = "//" in text or (takes_place(name) and (_ODD.search(text) or "*" in text))
    if not about:
        return True
    head = re.split(r"[*?\[{]", pattern, maxsplit=1)[0]
    scheme = re.match(r"[^/]*//", text)
    if "//" not in pattern and scheme and scheme[0].startswith(head):
        found = places(pattern[len(head) :] or "*")  # such as `http*`: its star goes over the scheme
    return all(any(place.covers(reading) for place in found) for reading in readings(text))


def check_host(text: str) -> None:
    """An entry of the condition `host`: as a network grant names it, or a range of addresses."""
    if _network(text):
        return
    check_text(text)
    try:
        Reach.parse(text)
    except CallError as error:
        raise ConfigError(error.message, error.fix) from None


def reaches_only(entries: Sequence[str], text: str) -> bool:
    """Whether all that a text asks for is within what the entries of an allow name, by the proxy's strict reading."""
    asked = _strict(text)
    return asked is not None and any(_holds(entry, asked) for entry in entries)


def _strict(text: str) -> Reach | None:
    try:
        if "://" in text and text.count("/") > 2:
            target = target_of(text)
            return Reach(target.host, False, target.scheme, frozenset({target.port}))
        return Reach.parse(text)
    except CallError:
        return None


def _holds(entry: str, asked: Reach) -> bool:
    net = _network(entry)
    if net:
        return not asked.below and any(
            address in net for one in readings(_bracketed(asked.host)) for address in one.addresses
        ) and asked.ports <= {80, 443}  # fmt: skip
    given = Reach.parse(entry)
    if given.below:
        named = asked.host.endswith(f".{given.host}") or (asked.below and asked.host == given.host)
    else:
        named = not asked.below and asked.host == given.host
    return named and given.scheme in ("", asked.scheme) and asked.ports <= given.ports


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _network(text: str) -> Network | None:
    if "/" not in text:
        return None
    try:
        return ip_network(text.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        return None


def _with_embedded(net: Network) -> list[Network]:
    """A range of IPv6 addresses that carries IPv4 ones is also the range of these."""
    if isinstance(net, IPv6Network) and net.prefixlen >= 96:
        inner = [ip_network((int(four), net.prefixlen - 96)) for four in embedded(net.network_address)]
        return [net, *inner]
    return [net]


def _split(authority: str) -> tuple[str, str]:
    six = _IPV6.match(authority)
    if six:
        return six[1], authority[six.end() :].lstrip(":")
    if _ADDRESS.fullmatch(authority) and authority.count(":") > 1:
        return authority, ""
    found = _PORT.fullmatch(authority)
    return (found[1], found[2]) if found else (authority, "")


def _literal(text: str) -> list[Token]:
    return [f"={char}" for char in text]


def _compiled(text: str, literal: bool) -> re.Pattern[str]:
    return alternatives([run_regex(_literal(text) if literal else tokens(text, text), ".", loose=True)])


def _fits(piece: Token, char: str) -> bool:
    if isinstance(piece, CharSet):
        return (char in {fold(one) for one in piece.chars}) is not piece.negated
    return piece == "?" or piece[1:] == char
