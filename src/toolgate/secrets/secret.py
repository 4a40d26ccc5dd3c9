"""One secret: its value, where it may be sent, and whether a program may hold it; and what can be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.core.errors import InvalidArgs
from toolgate.core.hosts import authority_of, bracketed, joined
from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass, field
from toolgate.secrets.finder import SHORTEST

NAME = late_pattern(r"[A-Z][A-Z0-9_]{0,63}")
LONGEST = 64 * 1024
"""Bytes of a value."""
MANY = 200
"""Secrets in one vault."""


@dataclass(frozen=True, slots=True)
class Secret:
    value: str = field(repr=False)
    hosts: tuple[str, ...] = ()
    """Where the egress proxy may put it in: a name, `*.name` for what is below it, either with `:port`."""
    reveal: bool = False
    """Whether a program may be given the value itself."""

    def fits(self, host: str) -> bool:
        """Whether it may be sent there; `host` is what a request names, with its port or without."""
        try:
            name, port = authority_of(host)
            places = [_place(allowed) for allowed in self.hosts]
        except InvalidArgs:
            return False
        return any(
            (name.endswith(f".{wanted}") if below else name == wanted) and only in (None, port)
            for below, wanted, only in places
        )

    def plain(self) -> dict[str, Any]:
        return {"value": self.value, "hosts": list(self.hosts), "reveal": self.reveal}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Secret:
        """What `plain` gave. Raises where it is something else."""
        value, hosts, reveal = data["value"], data["hosts"], data["reveal"]
        if not isinstance(value, str) or not isinstance(reveal, bool) or not isinstance(hosts, list):
            raise TypeError("not a secret")
        return cls(value, tuple(map(str, hosts)), reveal)


def _place(written: str) -> tuple[bool, str, int | None]:
    """Whether hosts below it are meant, its name in the one spelling that the proxy compares, and its port."""
    name, port = authority_of(written.removeprefix("*."))
    return written.startswith("*."), name, port


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InvalidArgs(
            f"{name[:80]!r} is not a secret's name",
            "use capital letters, digits and _, beginning with a letter, at most 64: GITHUB_TOKEN",
        )
    return name


def checked(value: str | bytes, hosts: Iterable[str] = (), reveal: bool = False) -> Secret:
    """A secret that can be kept and found again. No message repeats the value."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise InvalidArgs(
                "the value is not text", "give UTF-8 text; encode other data as base64"
            ) from None
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidArgs("the value has broken characters", "give UTF-8 text") from None
    if "\0" in value:
        raise InvalidArgs("the value is not text: it has a NUL", "encode binary data as base64")
    if size > LONGEST:
        raise InvalidArgs(f"the value has {size:,} bytes, the limit is {LONGEST:,}", "keep a shorter one")
    ink = "".join(value.split())
    if len(ink) < SHORTEST:
        raise InvalidArgs(
            f"the value has {len(ink)} characters, whitespace apart; fewer than {SHORTEST} would mangle ordinary text",
            "use a longer secret",
        )
    if len(set(ink)) == 1:
        raise InvalidArgs(
            "the value is one character repeated, which ordinary text is too", "use a real secret"
        )
    return Secret(value, tuple(dict.fromkeys(map(_host, hosts))), reveal)


def _host(written: str) -> str:
    try:
        below, name, port = _place(written.strip())
    except InvalidArgs:
        raise InvalidArgs(
            f"{written[:80]!r} is not a host",
            "write its name as in `api.example.com`, `*.example.com` or `localhost:8080`",
        ) from None
    return ("*." if below else "") + (bracketed(name) if port is None else joined(name, port))
