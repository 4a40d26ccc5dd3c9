"""Where a request goes, read from its URL by one strict reading: what a client and we could read differently is refused."""

from __future__ import annotations

import re

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
