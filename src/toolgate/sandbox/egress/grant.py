"""What a program may reach: hosts, ports and methods. What is not in it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.reach import Reach
from toolgate.core.target import Target

MAX_HOSTS = 100
_METHOD = re.compile(r"[A-Z]{1,20}")
_NEVER = frozenset({"CONNECT", "TRACE"})
"""CONNECT follows from a grant without methods; TRACE sends back what was put in."""


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
