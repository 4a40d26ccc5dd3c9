"""One place on the network as a network grant names it. The proxy compares requests with it, policy compares rules."""

from __future__ import annotations

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs
from toolgate.core.hosts import authority_of, bracketed
from toolgate.core.records import dataclass
from toolgate.core.target import DEFAULT_PORTS, Target


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
