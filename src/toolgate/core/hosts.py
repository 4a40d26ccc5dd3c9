"""Hosts in one spelling each. What could be read in two ways is an error, not a guess."""

from __future__ import annotations

import socket
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs
from toolgate.core.late_pattern import late_pattern

_LABEL = late_pattern(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = late_pattern(r"[0-9]+|0x[0-9a-f]*")
_PORT = late_pattern(r"[0-9]{1,5}")


def host_of(text: str) -> str:
    """A name in lower-case ASCII without its last dot, or an address as `ipaddress` writes it, without brackets."""
    if text.startswith("["):
        return _ipv6(text)
    name = _ascii(text).lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise _odd(text, "it is not a host's name")
    if any(label.startswith("xn--") and not _is_idna(label) for label in labels):
        raise _odd(text, "it has a label in Punycode that stands for nothing")
    return name


def authority_of(text: str) -> tuple[str, int | None]:
    """`host`, `host:port` or `[address]:port`; nothing else may stand in it."""
    if "@" in text:
        raise _odd(text, "it has a user name in it")
    host, colon, port = text.partition(":")
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        host, (before, colon, port) = host + bracket, rest.partition(":")
        if before:
            raise _odd(text, "something stands behind the bracket")
    if not colon:
        return host_of(host), None
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise _odd(text, f"{visible(port[:20])!r} is not a port")
    return host_of(host), int(port)


def joined(host: str, port: int) -> str:
    return f"{bracketed(host)}:{port}"


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    import idna  # its tables are large, and few names need them

    try:
        if len(text) > 253:
            raise UnicodeError
        return idna.encode(text, uts46=True, std3_rules=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise _odd(text, "it is not an international name (IDNA)") from error


def _is_idna(label: str) -> bool:
    import idna

    try:
        idna.decode(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError as error:
        # Octal, hexadecimal, short and decimal spellings: what the C library would make of them, as a hint only.
        try:
            meant = f"write {socket.inet_ntoa(socket.inet_aton(text))}"
        except (OSError, ValueError):
            meant = "write four numbers from 0 to 255"
        raise _odd(text, "it is not an IPv4 address in its usual spelling", meant) from error


def _ipv6(text: str) -> str:
    inner = text[1:-1]
    if not text.endswith("]") or "%" in inner:
        raise _odd(text, "it is not an IPv6 address in brackets, without a zone")
    try:
        address = IPv6Address(inner)
    except AddressValueError as error:
        raise _odd(text, "it is not an IPv6 address") from error
    return str(address.ipv4_mapped or address)


def _odd(text: str, why: str, fix: str = "write a plain host name or address") -> InvalidArgs:
    return InvalidArgs(f"{visible(text[:100])!r} is not a host that can be allowed or reached: {why}", fix)
