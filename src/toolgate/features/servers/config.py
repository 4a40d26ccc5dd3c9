"""One MCP server behind the gate, as `servers:` in toolgate.yaml describes it.

A value may refer to this user's environment (`${env:NAME}`), and a variable or header also to the vault
(`${secret:NAME}`); it is looked up when the server is started and written nowhere. `$${` stands for a plain `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from toolgate.core.canonical import digest
from toolgate.core.errors import Unavailable
from toolgate.core.records import dataclass, field
from toolgate.policy.model import WHOLE, Flaw, PhaseName, Strict, Word, all_flawed, flawed

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_FAMILIES = """agents ai archon catalog code data db events exec fs garden gate git http human jobs ledger mcp md memory
model notify persona plan policy recall room sandbox scratch secrets servers session system task tasks toolgate
tools web"""
RESERVED = frozenset(_FAMILIES.split())
"""Families of toolgate's own: a rule about `git.*` must never come to mean somebody else's tools."""
_REFERENCE = re.compile(r"\$?\$\{([^}]*)\}")
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_VAULT = re.compile(r"secret:([A-Z][A-Z0-9_]{0,63})")
_PRIVATE = ("env", "headers")
"""Where a secret may be put: arguments and addresses can be seen by others."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET = re.compile(
    r"(key|token|secret|passw|pwd|credential|auth|bearer|cookie|private|dsn|connection_?string)", re.I
)
Seconds = Annotated[float, Field(gt=0, le=600, strict=True)]
Globs = tuple[Annotated[str, Field(min_length=1, max_length=200)], ...]
Transport = Literal["stdio", "http", "sse"]


class ServerSpec(Strict):
    """Either `command` (a program that speaks MCP on stdin and stdout) or `url`."""

    command: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    args: tuple[Annotated[str, Field(max_length=65536)], ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    """All it gets beside PATH, HOME, LANG, LC_ALL, TMPDIR and TZ."""
    cwd: str | None = None
    """Absent: the project."""
    data: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = ()
    """Files and directories among the arguments that are data: they are not held as what it is started from."""
    url: Annotated[str, Field(max_length=4096)] | None = None
    transport: Transport | None = None
    """Absent: `stdio` with a command, `http` (streamable) with a url; `sse` is the old way."""
    headers: dict[str, str] = Field(default_factory=dict)
    enabled: Annotated[bool, Field(strict=True)] = True
    timeout_s: Seconds = 60.0
    """For one call."""
    start_timeout_s: Seconds = 30.0
    """For starting it and listing its tools."""
    allow: Globs | None = None
    """Its tools that enter, by their own names. Absent: all of them."""
    deny: Globs = ()
    phase: PhaseName = "observe"
    """The earliest phase whose table may allow its tools."""
    read_only: Literal["annotated", "none"] | Globs = "annotated"
    """Which tools count as reading: those it marks so in a definition that a human approved, none, or these."""
    pin: Literal["ask", "first"] = "ask"
    """Who approves the first definitions: a human (`ask`), or whoever wrote this line (`first`)."""
    elicitation: Literal["deny", "allow"] = "allow"
    """Whether a caller's client may show its questions to the human."""
    sampling: Word = "deny"
    """Whether it may have the model of a caller's client say something: never, each time a human agrees, or as policy
    decides about `SERVER.sampling`."""

    @model_validator(mode="after")
    def _whole(self) -> ServerSpec:
        if (self.command is None) == (self.url is None):
            problem = "names neither" if self.command is None else "names both"
            raise flawed(f"a server {problem} `command` and `url`", "write one of the two")
        kind = self.kind
        if (kind == "stdio") != (self.command is not None):
            fix = "remove it, or use `stdio` with a command, `http` or `sse` with a url"
            raise flawed(f"the transport `{kind}` does not fit", fix, "transport")
        for name, other in (
            ("args", "url"),
            ("env", "url"),
            ("cwd", "url"),
            ("data", "url"),
            ("headers", "command"),
        ):
            if getattr(self, name) and getattr(self, other) is not None:
                raise flawed(f"`{name}` has no meaning beside `{other}`", "remove it", name)
        if self.url is not None and not re.match(r"https?://[^/\s]", self.url):
            raise flawed(f"{self.url[:80]!r} is not an address", "begin with https:// or http://", "url")
        for name in self.headers:
            if not _HEADER.fullmatch(name):
                raise flawed(f"{name[:80]!r} is not the name of a header", "correct it", "headers", name)
        for name in self.env:
            if not name or "=" in name or "\0" in name:
                raise flawed(f"{name[:80]!r} is not a variable's name", "correct it", "env", name)
        for at, text in self._texts():
            _check_text(text, at)
        return self

    def _texts(self) -> list[tuple[tuple[str | int, ...], str]]:
        found: list[tuple[tuple[str | int, ...], str]] = [
            (("args", index), text) for index, text in enumerate(self.args)
        ]
        found += [(("env", name), text) for name, text in self.env.items()]
        found += [(("headers", name), text) for name, text in self.headers.items()]
        found += [((name,), text) for name in ("command", "cwd", "url") if (text := getattr(self, name))]
        return found

    @property
    def kind(self) -> Transport:
        return self.transport or ("stdio" if self.command is not None else "http")

    @property
    def shown(self) -> str:
        """What is started or reached, as written: references stay references."""
        if self.command is not None:
            return " ".join((self.command, *self.args))
        return self.url or ""

    @property
    def given(self) -> list[str]:
        """The variables of this user's environment that it is handed."""
        return self._referred(_ENV)

    @property
    def secrets(self) -> list[str]:
        """The secrets of the vault that it is handed."""
        return self._referred(_VAULT)

    def _referred(self, kind: re.Pattern[str]) -> list[str]:
        names = {
            found.group(1)
            for _, text in self._texts()
            for match in _REFERENCE.finditer(text)
            if not match.group().startswith("$$") and (found := kind.fullmatch(match.group(1)))
        }
        return sorted(names)

    @property
    def launch(self) -> str:
        """Hash of what is started or reached; definitions are approved for exactly that."""
        described: dict[str, Any] = {
            "command": self.command, "args": list(self.args), "env": self.env, "cwd": self.cwd,
            "url": self.url, "transport": self.kind, "headers": self.headers,
        }  # fmt: skip
        return digest(described)


def name_flaws(name: str) -> Iterator[Flaw]:
    if name in RESERVED:
        fix = f"call it `{name}-server`"
        yield Flaw((name,), f"`{name}` is a family of toolgate's own tools", fix)
    elif not NAME.fullmatch(name):
        fix = "use lower-case letters, digits and -, beginning with a letter"
        yield Flaw((name,), f"{name[:80]!r} is not a server's name", fix)


def _named(servers: dict[str, ServerSpec]) -> dict[str, ServerSpec]:
    found = [flaw for name in servers for flaw in name_flaws(name)]
    if found:
        raise all_flawed(WHOLE, found)
    return servers


ServersSection = Annotated[
    dict[str, ServerSpec],
    BeforeValidator(lambda given: {} if given is None else given),
    AfterValidator(_named),
]


def looks_secret(name: str) -> bool:
    """Whether a variable, flag or header of this name is likely to hold a secret."""
    return bool(_SECRET.search(name))


def _check_text(text: str, at: tuple[str | int, ...]) -> None:
    if any(char in text for char in "\0\r\n") and at[0] != "args":
        raise flawed("a line break or NUL in a value", "write it on one line", *at)
    for match in _REFERENCE.finditer(text):
        if match.group().startswith("$$") or _ENV.fullmatch(match.group(1)):
            continue
        if _VAULT.fullmatch(match.group(1)):
            if at[0] in _PRIVATE:
                continue
            fix = "put it into a variable of `env` or a header of `headers`"
            raise flawed(f"`{match.group()}` in `{at[0]}` could be seen by others", fix, *at)
        fix = "write `${env:NAME}` for a variable, `${secret:NAME}` for a secret of the vault, or `$${` for a plain `${`"
        raise flawed(f"`{match.group()[:80]}` refers to nothing that toolgate knows", fix, *at)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where references lead."""

    environ: Mapping[str, str]
    secret: Callable[[str], str | None] = field(default=lambda name: None, repr=False)
    redact: Callable[[Any, tuple[str, ...]], Any] = field(default=lambda value, hidden: value, repr=False)
    """Takes the vault's values, and those that a call hides, out of a value."""


def filled(text: str, sources: Sources, used: Callable[[str, str], None]) -> str:
    """The text with its references looked up; `used` hears every value, so that it can be kept out of logs."""

    def look_up(match: re.Match[str]) -> str:
        if match.group().startswith("$$"):
            return match.group()[1:]
        kept = _VAULT.fullmatch(match.group(1))
        if kept is not None:
            return _from_vault(kept.group(1), sources)
        name = match.group(1).removeprefix("env:")
        value = sources.environ.get(name)
        if not value:
            raise Unavailable(
                f"the environment variable {name} is not set", f"set {name} where toolgate is started"
            )
        used(name, value)
        return value

    return _REFERENCE.sub(look_up, text)


def _from_vault(name: str, sources: Sources) -> str:
    value = sources.secret(name)
    if value is None:
        raise Unavailable(
            f"there is no secret {name} in the vault", f"`toolgate secrets set {name}` keeps one"
        )
    if any(char in value for char in "\0\r\n"):
        raise Unavailable(f"the secret {name} has several lines", "a variable or header takes only one line")
    return value
