"""What a program may reach: hosts, ports and methods. What is not in it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs, NotAllowed

from .hosts import authority_of, bracketed
from .target import DEFAULT_PORTS, Target

MAX_HOSTS = 100
_METHOD = re.compile(r"[A-Z]{1,20}")
_NEVER = frozenset({"CONNECT", "TRACE"})
"""CONNECT follows from a grant without methods; TRACE sends back what was put in."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One entry of a grant: `api.example.com`, `https://api.example.com:8443` or `*.example.com`."""

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


@dataclass(frozen=True, slots=True)
class Grant:
    hosts: tuple[Reach, ...] = ()
    methods: frozenset[str] | None = None
    """None for all, and only then for tunnels, in which nobody sees the method."""

    @classmethod
    def parse(cls, hosts: Iterable[str], methods: Iterable[str] | None = None) -> Grant:
        """From what the caller wrote. `InvalidArgs` for anything odd."""
        reaches = tuple(dict.fromkeys(map(Reach.parse, hosts)))
        if len(reaches) > MAX_HOSTS:
            raise InvalidArgs(
                f"a grant with {len(reaches)} hosts; {MAX_HOSTS} are the most", "name fewer hosts"
            )
        if methods is None:
            return cls(reaches)
        upper = frozenset(method.upper() for method in methods)
        for method in sorted(upper):
            if not _METHOD.fullmatch(method) or method in _NEVER:
                raise InvalidArgs(
                    f"{visible(method[:30])!r} is not a method that can be granted", "name GET, POST, …"
                )
        return cls(reaches, upper)

    def check(self, method: str, target: Target) -> None:
        """Returns if this may be sent there."""
        if not any(reach.covers(target) for reach in self.hosts):
            raise NotAllowed(
                f"this program may not reach {target.scheme or 'CONNECT'} {target.place[:300]}; it may reach {self}",
                "ask for a network grant that names this host and port",
            )
        if method != "CONNECT" and method.upper() in _NEVER:
            raise NotAllowed(f"{method} is never sent", "use another method")
        if self.methods is None or method in self.methods:
            return
        allowed = ", ".join(sorted(self.methods)) or "no method"
        if method == "CONNECT":
            raise NotAllowed(
                f"CONNECT would hide the method, and this program may only use {allowed}",
                "send the https:// URL itself to the proxy (get_json and fetch_with_auth do)",
            )
        raise NotAllowed(
            f"this program may only use {allowed}, not {method[:30]}", "ask for a grant with that method"
        )

    def __str__(self) -> str:
        names = [str(reach) for reach in self.hosts]
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (", ".join(names[:10]) or "no host") + more
