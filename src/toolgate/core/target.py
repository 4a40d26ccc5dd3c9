"""Places on the network: where a request goes, and what a network grant names. The proxy compares requests with grants,
policy compares rules. A URL has one strict reading: what a client and we could read differently is refused.
"""

from __future__ import annotations

import re

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs
from toolgate.core.hosts import authority_of, bracketed, joined
from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass

DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = late_pattern(r"(?P<scheme>https?)://(?P<authority>[^/?#]+)(?P<path>[/?].*)?", re.IGNORECASE)
_PRINTABLE = late_pattern(r"[\x21-\x7e]*")
_USER = late_pattern(r"(?<=//)[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str
    """`http`, `https`, or nothing for a tunnel."""
    host: str
    port: int
    path: str = ""
    """With its query, as the next server is to read it."""

    @property
    def place(self) -> str:
        return joined(self.host, self.port)

    @property
    def host_header(self) -> str:
        usual = DEFAULT_PORTS.get(self.scheme) == self.port
        return bracketed(self.host) if usual else self.place


def target_of(url: str) -> Target:
    if not _PRINTABLE.fullmatch(url) or "\\" in url or "#" in url:
        raise InvalidArgs(
            "the URL has a space, a backslash, a fragment or a character outside ASCII",
            "percent-encode it, and leave the fragment out",
        )
    found = _URL.fullmatch(url)
    if found is None:
        raise InvalidArgs("the URL does not begin with http:// or https:// and a host", "send a whole URL")
    scheme = found["scheme"].lower()
    host, port = authority_of(found["authority"])
    path = found["path"] or "/"
    return Target(scheme, host, port or DEFAULT_PORTS[scheme], path if path[0] == "/" else f"/{path}")


def tunnel_of(authority: str) -> Target:
    host, port = authority_of(authority)
    if port is None:
        raise InvalidArgs("CONNECT needs a host and a port", "write host:port")
    return Target("", host, port)


def shown(url: str) -> str:
    """For the record: without user names and passwords, and not endless."""
    return _USER.sub("", url)[:2000]


@dataclass(frozen=True, slots=True)
class Reach:
    """One entry of a network grant: `api.example.com`, `https://api.example.com:8443` or `*.example.com`."""

    host: str
    """With `below`, the name under which the hosts are; itself not among them."""
    below: bool
    scheme: str
    """Nothing for both."""
    ports: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Reach:
        scheme, mark, authority = text.strip().rpartition("://")
        if mark and scheme.lower() not in DEFAULT_PORTS:
            raise InvalidArgs(
                f"{visible(text[:100])!r} has a scheme other than http and https", "leave it out"
            )
        if "/" in authority or "?" in authority or "#" in authority:
            raise InvalidArgs(f"{visible(text[:100])!r} has a path; a grant is for a host", "leave it out")
        below = authority.startswith("*.")
        host, port = authority_of(authority.removeprefix("*."))
        if below and ("." not in host or host[-1].isdigit()):
            raise InvalidArgs(
                f"{visible(text[:100])!r} would be half the internet", "name two labels: *.example.com"
            )
        usual = DEFAULT_PORTS.values() if not mark else [DEFAULT_PORTS[scheme.lower()]]
        return cls(host, below, scheme.lower(), frozenset([port] if port else usual))

    def covers(self, target: Target) -> bool:
        named = target.host.endswith(f".{self.host}") if self.below else target.host == self.host
        # A tunnel is for TLS: an entry for plain http does not open one.
        speaks = self.scheme in ("", target.scheme or "https")
        return named and speaks and target.port in self.ports

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if self.scheme else ""
        usual = {DEFAULT_PORTS[self.scheme]} if self.scheme else set(DEFAULT_PORTS.values())
        port = "" if self.ports == usual else f":{min(self.ports)}"
        return f"{scheme}{'*.' if self.below else ''}{bracketed(self.host)}{port}"
