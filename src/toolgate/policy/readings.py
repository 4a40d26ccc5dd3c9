"""Every place on the network that a text could lead to, whichever client reads it.

The proxy reads one way and refuses the rest (`core/hosts.py`). A tool of somebody else may not: browsers drop line ends,
take a backslash for a slash and `0x7f.1` for 127.0.0.1, others do not. A rule that denies must hold for all of them, so
what can be read in several ways has several readings here. Ports and schemes are kept apart from the host.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from urllib.parse import unquote

from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass
from toolgate.policy.globs import fold

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PLAIN = late_pattern(
    r"((?:[a-z0-9_-]+\.)*[a-z_][a-z0-9_-]*)(?:/[\x21-\x2f\x3b-\x5b\x5d-\x7e0-9]*)?", re.IGNORECASE
)
"""A name, perhaps with a path, that every client reads alike: most are, and reading them costs next to nothing."""
_DROPPED = late_pattern(r"[\x00-\x1f\x7f]")
_SCHEME = late_pattern(r"([a-z][a-z0-9+.-]*):([/\\]*)", re.IGNORECASE)
_INNER = late_pattern(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}):[/\\]{2,}|@[/\\]{2,}", re.IGNORECASE)
_LISTED = late_pattern(r"[\s,;|()]+")
_NAMED = late_pattern(r"-{0,2}[a-z][a-z0-9_. -]*=", re.IGNORECASE)
"""Before a value, as in `host=db.example` and `--proxy=db.example`."""
_AROUND = " \t\r\n<>()\"'`"
"""What clients take off: `urllib` opens `<http://…>`, others unquote."""
_MORE = late_pattern(r"[^/\\?#:]*\.[^/\\?#:]*[a-z]", re.IGNORECASE)
_WILD = late_pattern(r".*[*?\]}]", re.DOTALL)
"""Up to the last sign by which patterns stand for something else."""
_HOSTS = late_pattern(r"[,;]")
_CUTS = (re.compile(r"[/\\?#]"), re.compile(r"[/?#]"), re.compile(r"/"))
"""Where a host may end: to browsers, to RFC 3986, and to what looks for a slash only."""
_AFTER = late_pattern(r"\][^:]")
"""A set of characters in a pattern: an address is followed by its port or nothing."""
_DOTS = str.maketrans({"\u3002": ".", "\uff61": ".", "\uff0e": "."})
_NUMBER = late_pattern(r"[0-9]+|0x[0-9a-f]*")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
_USUAL = frozenset({"80", "443"})
"""What a host without a port and scheme means, as in a network grant."""
_MOST = 64
MAX_HOST_LENGTH = 253
"""Characters of a host's name; a longer one leads nowhere."""
_COMPATIBLE, _ISATAP = IPv6Network("::/96"), 0x5EFE
_CARRYING = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))
"""Whose last four bytes are an IPv4 address: both kinds of NAT64, and SIIT."""
_RANGE = late_pattern(r"((?:[0-9]{1,3}\.){0,3})[0-9]{0,2}[*?][0-9.*?]*(?::|$)")
"""Addresses by a pattern, such as `10.0.*`."""


@dataclass(frozen=True, slots=True)
class HostReading:
    scheme: str
    """Nothing where the text leaves it open."""
    names: frozenset[str]
    """The host in its spellings: folded, in ASCII and in Unicode; an address as `ipaddress` writes it."""
    addresses: frozenset[Address] = frozenset()
    tails: frozenset[str] = frozenset()
    """For a pattern such as `*.example.com`: what its hosts end with."""
    ports: frozenset[str] = _USUAL
    """Empty: any."""
    path: str = "/"
    nets: frozenset[Network] = frozenset()
    """Of a range of addresses, or a pattern of some."""

    def paths(self) -> frozenset[str]:
        """As it is written, and as a server reads it: decoded, without `..`, with one slash for several."""
        plain = self.path if self.path.startswith("/") else f"/{self.path}"
        decoded = unquote(unquote(plain.partition("?")[0].partition("#")[0])).replace("\\", "/")
        short = re.sub("/+", "/", posixpath.normpath(decoded))
        ended = short + "/" * (decoded.endswith("/") and short != "/")
        return frozenset(fold(one) or "/" for one in (plain, decoded, short, ended))


def plain(text: str) -> HostReading | None:
    found = _PLAIN.fullmatch(text)
    if found is None or "@" in text:
        return None
    return HostReading("", frozenset({found[1].lower()}), path=text[found.end(1) :] or "/")


@lru_cache(maxsize=512)
def readings(text: str, listed: bool = False) -> tuple[HostReading, ...]:
    """With `listed`, the text may also name several places, with commas or spaces between them."""
    simple = plain(text)
    if simple is not None:
        return (simple,)
    pieces = [_DROPPED.sub("", text).strip(_AROUND)]
    if listed:
        pieces += [piece.strip(_AROUND) for piece in _LISTED.split(text) if "." in piece or ":" in piece]
    pieces += [piece[found.end() :] for piece in pieces if (found := _NAMED.match(piece))]
    if "%" in text:  # some undo escapes before they look for the host's end
        pieces += [unquote(piece) for piece in pieces] + [unquote(unquote(piece)) for piece in pieces]
    return tuple(dict.fromkeys(one for piece in dict.fromkeys(pieces) for one in _of_piece(piece)))


def _of_piece(piece: str) -> Iterator[HostReading]:
    simple = plain(piece)
    if simple is not None:
        yield simple
        return
    if (net := address_range(piece)) is not None:
        yield HostReading("", frozenset(), nets=frozenset({net}), ports=frozenset())
    for scheme, rest in dict.fromkeys(_split_scheme(piece)):
        ends = [found.start() if found else len(rest) for found in (cut.search(rest) for cut in _CUTS)]
        for end in dict.fromkeys(ends):
            users = rest[:end].split("@")
            for hosts in {users[-1], *users[1:2]}:
                for host in dict.fromkeys(_HOSTS.split(hosts, _MOST)):
                    yield from _place(scheme, host, rest[end:] or "/")


def _split_scheme(piece: str) -> Iterator[tuple[str, str]]:
    found = _SCHEME.match(piece)
    if found and (found[2] or found[1].lower() in _PORTS):
        yield found[1].lower(), piece[found.end() :]
    elif found and _MORE.match(piece, found.end()):  # `tcp:db.example:80`
        yield "", piece[found.end() :]
    if not found or not found[2]:
        yield "", piece.lstrip("/\\") if piece[:2] in ("//", "\\\\", "/\\", "\\/") else piece
    for count, inner in enumerate(_INNER.finditer(piece, 1)):  # behind `--url=`, `jdbc:` and their like
        if count >= _MOST:
            return
        yield (inner[1] or "").lower(), piece[inner.end() :]


def address_range(text: str) -> Network | None:
    """All that a range of addresses, or a pattern of some, may be."""
    try:
        if "/" in text and text[:1] in "[:0123456789abcdefABCDEF":
            return _network(text)
        if (wild := _RANGE.match(text)) is None:
            return None
        known = [part for part in wild[1].split(".") if part]
        return IPv4Network((".".join([*known, *["0"] * (4 - len(known))]), 8 * len(known)))
    except ValueError:
        return None


def _network(text: str) -> Network:
    """`10.0.0.0/8`, `fd00::/8`; short forms such as `10/8` too."""
    address, _, size = text.replace("[", "").replace("]", "").partition("/")
    parts = address.strip(".").split(".")
    if len(parts) < 4 and ":" not in address:
        address = ".".join([*parts, *["0"] * (4 - len(parts))])
    return ip_network(f"{address}/{size}", strict=False)


def _place(scheme: str, text: str, path: str) -> Iterator[HostReading]:
    host, port = _split_port(text)
    names, addresses, tails = _host(host)
    if names or tails:
        ports = frozenset({port}) if port else _default_ports(scheme)
        yield HostReading(scheme, names, addresses, tails, ports, path)


@lru_cache(maxsize=1024)
def _host(text: str) -> tuple[frozenset[str], frozenset[Address], frozenset[str]]:
    """Its names, the addresses that it spells, and the tails of a wildcard."""
    names = _spellings(text)
    addresses: set[Address] = set()
    for name in (text, *names):
        if len(name) <= MAX_HOST_LENGTH and (":" in name or name[:1].isdigit()):
            addresses |= _addresses(name)
    tails = frozenset(name[found.end() :] for name in names if (found := _WILD.match(name)))
    named = {name for name in names if "*" not in name} | {str(address) for address in addresses}
    return frozenset(named), frozenset(addresses), tails


def _default_ports(scheme: str) -> frozenset[str]:
    if not scheme:
        return _USUAL
    return frozenset({_PORTS[scheme]}) if scheme in _PORTS else frozenset()


def _split_port(text: str) -> tuple[str, str]:
    """The host, and its port as a number; a port that is none says nothing."""
    if text.startswith("[") and not _AFTER.search(text):
        host, _, rest = text[1:].partition("]")
        return host, _port(rest.lstrip(":"))
    if text.count(":") > 1:
        host = text.partition(":")[0]
        return (text, "") if _ipv6(text) is not None else (host, "")
    host, _, port = text.partition(":")
    return host, _port(port)


def _port(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).strip()
    return str(int(text)) if text.isdecimal() and len(text) <= 12 else ""


def _spellings(host: str) -> set[str]:
    if host.isascii() and "%" not in host and "xn--" not in host.lower():
        return {host.lower().strip(". ")} - {""}
    found: set[str] = set()
    for text in dict.fromkeys((host, unquote(host), unquote(unquote(host)))):
        dotted = text.translate(_DOTS)
        name = fold(dotted).translate(_DOTS).strip(". ")
        found |= {name, name.partition("\0")[0]}  # where a C string ends
        if len(name) <= MAX_HOST_LENGTH:
            found |= {in_ascii(name), _in_unicode(name)}
            if (
                len(dotted) <= MAX_HOST_LENGTH
            ):  # before it was folded: sharp s and a few others are letters of their own
                found.add(in_ascii(dotted))
    return found - {""}


def in_ascii(name: str) -> str:
    """By its labels: a star in one of them is no reason to leave the others as they are."""
    return "." * name.startswith(".") + ".".join(_label(one) for one in name.strip(". ").split("."))


@lru_cache(maxsize=1024)
def _label(one: str) -> str:
    if one.isascii():
        return one.lower()
    import idna  # its tables are large, and few names need them

    try:
        return idna.encode(one[:253], uts46=True, std3_rules=False).decode()
    except (idna.IDNAError, UnicodeError):
        return fold(one)


def _in_unicode(name: str) -> str:
    if "xn--" not in name:
        return name
    labels = []
    for one in name.split("."):
        try:
            labels.append(one[4:].encode("ascii").decode("punycode") if one.startswith("xn--") else one)
        except (UnicodeError, ValueError):
            labels.append(one)
    return fold(".".join(labels))


def _addresses(host: str) -> set[Address]:
    bare = host.strip("[] .").partition("%")[0].lower()
    six = _ipv6(bare)
    if six is not None:
        return {six, *embedded(six)}
    return {*_ipv4(bare, 8), *_ipv4(bare, 10)}


def _ipv6(text: str) -> IPv6Address | None:
    if ":" not in text:
        return None
    try:
        return IPv6Address(text.strip("[]").partition("%")[0])
    except AddressValueError:
        return None


def _ipv4(host: str, zero: int) -> Iterator[IPv4Address]:
    """Decimal, octal, hexadecimal and short spellings; `zero` is the base that a leading zero means."""
    parts = host.split(".")
    if len(parts) > 4 or len(host) > 64 or not all(map(_NUMBER.fullmatch, parts)):
        return
    try:
        *most, last = (_number(part, zero) for part in parts)
    except ValueError:  # a digit that its base does not have
        return
    if any(each > 255 for each in most) or last >= 256 ** (4 - len(most)):
        return
    yield IPv4Address(sum(each << 8 * (3 - at) for at, each in enumerate(most)) + last)


def _number(part: str, zero: int) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, zero if part.startswith("0") else 10)


def embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for, by any of the ways to carry one in the other."""
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    carried = (
        address.ipv4_mapped is not None
        or any(address in net for net in _CARRYING)
        or int(address) >> 32 & 0xFFFF == _ISATAP
    )
    if carried or (address in _COMPATIBLE and int(low) > 0xFFFF):
        yield low
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield address.teredo[1]
